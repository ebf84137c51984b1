//! Names in documents: unknown ones are refused, with the name that was probably meant.

use serde_json::Value;

/// Refuse keys of `value` that `known`, a document with every key, does not have. `of` names the document.
pub fn check_names(value: &Value, known: &Value, of: &str) -> Result<(), String> {
    match (value, known) {
        (Value::Object(found), Value::Object(names)) => {
            for (name, inner) in found {
                let Some(inner_known) = names.get(name) else {
                    return Err(unknown(
                        "parameter",
                        name,
                        names.keys().map(String::as_str),
                        of,
                    ));
                };
                check_names(inner, inner_known, of)?;
            }
            Ok(())
        }
        (Value::Array(found), Value::Array(names)) => match names.first() {
            Some(first) => found
                .iter()
                .try_for_each(|inner| check_names(inner, first, of)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// One line about an unknown name.
pub fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    of: &str,
) -> String {
    let likeness = |other: &&str| strsim::jaro_winkler(name, other);
    let closest = known
        .clone()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let hint = match closest {
        None => "it has none".to_owned(),
        Some(meant) if likeness(&meant) >= 0.8 => format!("did you mean {meant:?}?"),
        _ => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    };
    format!("unknown {what} {name:?} of {of}; {hint}")
}

/// Refuse a value outside of a range; the error names it and the range.
pub fn within<T: PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), String> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(format!("{name} is {value}; give {low} to {high}"))
}

/// Refuse a value that is not above zero, or beyond a bound.
pub fn above_zero(name: &str, value: f64, high: f64) -> Result<(), String> {
    if value > 0.0 && value <= high {
        return Ok(());
    }
    Err(format!("{name} is {value}; give above 0 to {high}"))
}
