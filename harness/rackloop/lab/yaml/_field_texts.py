"""The strings below the fields of a model, which describe them.

They are read from the source when asked for, for a message or a schema. pydantic's ``use_attribute_docstrings`` reads
it for every model at every start.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def field_texts(model: type[BaseModel]) -> Mapping[str, str]:
    """The text of each field, on one line, by the key the field has in the file."""
    import ast
    import inspect

    (definition,) = ast.parse(inspect.getsource(model)).body
    texts = {}
    for field, text in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                texts[model.model_fields[name].alias or name] = " ".join(said.split())
    return texts
