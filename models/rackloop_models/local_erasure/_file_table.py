"""The files of a store: their names, their pages, and what of them has changed since the last commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rackloop.errors import BadInput, ProductFailed
from rackloop_models.local_erasure._errors import FileExists, FolderNotEmpty, NameTooLong, NoRoom, NoSuchFile
from rackloop_models.local_erasure._file import File, Group
from rackloop_models.local_erasure._journal import Journal
from rackloop_models.local_erasure._pages import (
    MOST_NAME_BYTES,
    FirstPage,
    FurtherPage,
    groups_of,
    page_of,
    unpack,
)
from rackloop_models.local_erasure._pages import pack as pack_page
from rackloop_models.local_erasure._space_allocator import SpaceAllocator

# A part of an operation changes this many pages at most before there can be a commit.
_PAGES_AT_ONCE = 20
_DROPPED_AT_ONCE = 16


class FileTable:
    """Files by name. ``commit`` makes the drive say what memory says, all of it or nothing.

    A folder is a file without content whose name ends with ``/``, which no other's does.
    """

    def __init__(self, journal: Journal, allocator: SpaceAllocator, m: int) -> None:
        self._journal = journal
        self._allocator = allocator
        self._m = m
        self._files: dict[str, File] = {}
        self._free: list[int] = []
        self._freed: list[int] = []
        self._dead: list[int] = []
        self._next_uid = 0
        self._changed: dict[File, None] = {}

    def load(self, first_uid: int) -> None:
        """Read all pages. Raises ReplicasDisagree, and ProductFailed where two groups lie at one place."""
        self._next_uid = first_uid
        sealed = self._journal.pages.read_all()
        pages = [unpack(page.payload) for page in sealed]
        files: dict[int, File] = {}
        counts: dict[int, int] = {}
        for number, page in enumerate(pages):
            if isinstance(page, FirstPage):
                file = File(page.uid, page.name, self._changed, page.size_bytes, page.modified_ns, pages={0: number})
                file.committed_bytes = page.size_bytes
                files[page.uid], counts[page.uid] = file, page.group_count
                self._files[page.name] = file
                self._claim(file, page)
        newest: dict[tuple[int, int], int] = {}
        further = {number: page for number, page in enumerate(pages) if isinstance(page, FurtherPage)}
        for number, page in further.items():
            if page.uid in files and page.number <= page_of(counts[page.uid] - 1):
                rival = newest.get((page.uid, page.number))
                if rival is None or sealed[rival].generation < sealed[number].generation:
                    newest[page.uid, page.number] = number
        for (uid, place), number in newest.items():
            files[uid].pages[place] = number
            self._claim(files[uid], further[number])
        used = {number for file in files.values() for number in file.pages.values()}
        self._free = [number for number in range(len(pages) - 1, -1, -1) if number not in used]

    def __iter__(self) -> Iterator[File]:
        return iter(self._files.values())

    def names(self) -> list[str]:
        """The names of all files, in order."""
        return sorted(name for name in self._files if not name.endswith("/"))

    def folders(self) -> list[str]:
        """The names of all folders, in order, without the one that has no name and holds all."""
        return sorted(name.removesuffix("/") for name in self._files if name.endswith("/"))

    def is_folder(self, name: str) -> bool:
        """Whether a folder has that name; the one that holds all has none."""
        return not name or f"{name}/" in self._files

    def named(self, name: str) -> File:
        """A file. Raises NoSuchFile."""
        if name.endswith("/") or name not in self._files:
            raise NoSuchFile(f"no file is named {name!r}")
        return self._files[name]

    def create(self, name: str, modified_ns: int) -> File:
        """A new, empty file. Raises BadInput for what no name is, NoSuchFile, FileExists and NoRoom."""
        self._require_place(name)
        if name in self._files or self.is_folder(name):
            kind = "folder" if self.is_folder(name) else "file"
            raise FileExists(f"there is a {kind} {name!r} already; open it, or remove it first")
        return self._added(name, modified_ns)

    def make_folder(self, name: str, modified_ns: int) -> None:
        """A new, empty folder. Raises as ``create``."""
        require_name(name, MOST_NAME_BYTES - 1)
        self._require_place(name)
        if name in self._files or self.is_folder(name):
            raise FileExists(f"there is a {'folder' if self.is_folder(name) else 'file'} {name!r} already")
        self._added(f"{name}/", modified_ns)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder. Raises NoSuchFile, FolderNotEmpty."""
        if not name or not self.is_folder(name):
            raise NoSuchFile(f"no folder is named {name!r}")
        self._require_empty(name)
        self.remove(self._files[f"{name}/"])

    def _added(self, name: str, modified_ns: int) -> File:
        file = File(self._next_uid, name, self._changed, modified_ns=modified_ns)
        self.take_page(file, 0)
        self._next_uid += 1
        self._files[name] = file
        file.change()
        return file

    def moves(self, old: str, new: str) -> list[tuple[str, str]]:
        """The calls of ``rename`` that give a file, or a folder with all that is in it, another name.

        Raises BadInput, NoSuchFile, FileExists and FolderNotEmpty where that cannot be.
        """
        self._require_place(new)
        if not old or not self.is_folder(old):
            self.named(old)
            if self.is_folder(new):
                raise FileExists(f"there is a folder {new!r}")
            return [] if old == new else [(old, new)]
        if new in self._files:
            raise FileExists(f"there is a file {new!r}")
        if old == new:
            return []
        if new.startswith(f"{old}/"):
            raise BadInput(f"the folder {old!r} cannot go into itself")
        if self.is_folder(new):
            self._require_empty(new)
        moves = [(name, new + name.removeprefix(old)) for name in sorted(self._files) if name.startswith(f"{old}/")]
        for _, name in moves:
            require_name(name.removesuffix("/"), MOST_NAME_BYTES - name.endswith("/"))
        return moves

    def rename(self, old: str, new: str) -> File | None:
        """Make one of ``moves``; the file that had the name is removed, and returned."""
        file = self._files[old]
        replaced = self._files.get(new)
        if replaced is not None:
            self.remove(replaced)
        del self._files[old]
        self._files[new] = file
        file.name = new
        file.change()
        return replaced

    def remove(self, file: File) -> None:
        """Take a file out of the table. Its groups are the caller's to give up."""
        del self._files[file.name]
        file.removed = True
        first = file.pages.pop(0)
        self._dead.append(first)
        self._freed += [first, *file.pages.values()]
        file.changed.clear()
        self._changed.pop(file, None)

    def take_page(self, file: File, page: int) -> bool:
        """Have a page for page ``page`` of a file; False where it had one. Raises NoRoom."""
        if page in file.pages:
            return False
        if not self._free:
            kind = "another file" if page == 0 else "more groups"
            raise NoRoom(f"the store has no page left to describe {kind}; remove files, or format it for more of them")
        file.pages[page] = self._free.pop()
        return True

    def return_page(self, file: File, page: int) -> None:
        """Give back a page that was taken and of which the drive knows nothing."""
        self._free.append(file.pages.pop(page))

    def cuts(self, file: File, groups: int) -> list[int]:
        """The places to cut a file that is to have so many groups before: as groups, from the end on."""
        dropped = sorted(_beyond(file, groups), reverse=True)
        return [groups_of(page).start for page in dropped[_DROPPED_AT_ONCE - 1 :: _DROPPED_AT_ONCE]]

    def drop_pages(self, file: File, groups: int) -> None:
        """The file has so many groups and no more: pages that describe later ones are free after the next commit.

        Which writes that they are: where the file is long again and has a hole there, they would be believed.
        """
        for page in _beyond(file, groups):
            number = file.pages.pop(page)
            self._freed.append(number)
            self._dead.append(number)
            file.changed.discard(page)
        file.change()

    def write_again(self, numbers: Iterable[int]) -> None:
        """Have the next commit write pages of which the drive knows nothing any more."""
        lost = set(numbers)
        for file in self:
            pages = {page for page, number in file.pages.items() if number in lost}
            if pages:
                file.changed |= pages
                self._changed[file] = None
                lost -= {file.pages[page] for page in pages}
        self._dead += sorted(lost)

    @property
    def free_pages(self) -> int:
        """Pages that are free, or will be after the next commit."""
        return len(self._free) + len(self._freed)

    @property
    def has_changed(self) -> bool:
        """Whether the drive says something else."""
        return bool(self._dead or self._changed)

    @property
    def awaits_commit(self) -> bool:
        """Whether a commit would free pages."""
        return bool(self._freed)

    @property
    def is_full(self) -> bool:
        """Whether a commit must come before the next operation, because the journal has no room for more of them."""
        if self._journal.most == self._journal.pages.count:
            return False
        changed = len(self._dead) + sum(len(file.changed) for file in self._changed)
        return changed + _PAGES_AT_ONCE > self._journal.most

    def commit(self, generation: int) -> None:
        """Write what has changed, in one transaction. What it describes must be on the drive.

        Where that fails, the drive may say what it said before, or what it was to say.
        """
        contents = {number: pack_page(None) for number in self._dead}
        for file in self._changed:
            contents |= {file.pages[page]: pack_page(file.describe(page)) for page in file.changed}
        groups = [
            group
            for file in self._changed
            for page in file.changed
            for index in groups_of(page)
            if (group := file.groups.get(index))
        ]
        for group in groups:
            group.committed = max(group.committed, group.stored)
        self._journal.commit(generation, contents)
        for group in groups:
            group.committed = group.stored
        for file in self._changed:
            file.committed_bytes = file.size_bytes
            file.changed.clear()
        self._changed.clear()
        self._dead.clear()
        self._free += self._freed
        self._freed.clear()

    def _require_place(self, name: str) -> None:
        """Raise BadInput for what is no name, NoSuchFile where there is no such folder to lie in."""
        require_name(name)
        folder = name.rpartition("/")[0]
        if not self.is_folder(folder):
            raise NoSuchFile(f"no folder is named {folder!r}; make it first")

    def _require_empty(self, folder: str) -> None:
        held = next((name for name in self._files if name.startswith(f"{folder}/") and name != f"{folder}/"), None)
        if held is not None:
            raise FolderNotEmpty(f"the folder {folder!r} is not empty, it has {held!r}")

    def _claim(self, file: File, page: FirstPage | FurtherPage) -> None:
        for index, (start, stored) in page.groups.items():
            if not self._allocator.claim(start, stored + self._m):
                raise ProductFailed(
                    f"file {file.name!r}, group {index}: its sectors {start} to {start + stored + self._m - 1} are "
                    "another group's too, or not on the drive; the store is damaged, copy its files elsewhere"
                )
            file.groups[index] = Group(file, index, start, stored + self._m, stored, stored)


def _beyond(file: File, groups: int) -> list[int]:
    """The pages of a file that it does not need for so many groups."""
    last = page_of(groups - 1) if groups else 0
    return [page for page in file.pages if page > last]


def require_name(name: str, most: int = MOST_NAME_BYTES) -> None:
    """Raise BadInput for what no name of a file or folder is. In a folder it begins with that one's name and ``/``."""
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise BadInput(f"a file's name is UTF-8, found {name!r}") from None
    if not 1 <= length <= most or "\0" in name or {"", ".", ".."} & set(name.split("/")):
        refusal = NameTooLong if length > most else BadInput
        raise refusal(
            f"a file's name has 1 to {most} bytes, its folders' and all, no NUL, and no '.', '..' or nothing between "
            f"two '/'; found {name!r}"
        )
