"""The comma-separated formats of public block traces, as their publishers describe them.

MSR Cambridge and SYSTOR '17 are at the SNIA IOTTA repository (traces 388 and 4928), Alibaba's and Tencent's block
traces come with the papers at IISWC '20 and ATC '20, SPC is the Storage Performance Council's trace file format 1.0.1,
CloudPhysics the VM traces of "Efficient MRC construction with SHARDS" (FAST '15) written as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop.traces._columns import Op
from rackloop.traces._format import NS_PER_S, SECTOR_BYTES, Clock, Field, Format, Kind, Loss

if TYPE_CHECKING:
    import polars

_YEAR_1601_NS = -11_644_473_600 * NS_PER_S
_SECTOR_DIGITS = 16  # times 512 it stays within 64 bits
_SCSI = {
    "28": Op.READ, "2a": Op.WRITE, "2A": Op.WRITE, "08": Op.READ, "0a": Op.WRITE, "0A": Op.WRITE, "88": Op.READ,
    "8a": Op.WRITE, "8A": Op.WRITE, "a8": Op.READ, "A8": Op.READ, "aa": Op.WRITE, "AA": Op.WRITE, "35": Op.FLUSH,
    "91": Op.FLUSH,
}  # fmt: skip


def request_columns(
    stamp: polars.Expr,
    op: polars.Expr,
    offset_bytes: polars.Expr,
    size_bytes: polars.Expr,
    volume: polars.Expr,
    response_ns: polars.Expr,
) -> list[polars.Expr]:
    """The columns that every ``read`` makes, under their names and types."""
    import polars

    return [
        stamp.cast(polars.Int64).alias("stamp"),
        op.cast(polars.UInt8).alias("op"),
        offset_bytes.alias("offset_bytes"),
        size_bytes.alias("size_bytes"),
        volume.cast(polars.String).alias("volume"),
        response_ns.cast(polars.Int64).alias("response_ns"),
    ]


def seconds_to_ns(name: str) -> polars.Expr:
    """A column of seconds, exact to the nanosecond, as nanoseconds."""
    import polars

    return (polars.col(name) * NS_PER_S).cast(polars.Int64)


def ns_to_seconds(name: str) -> polars.Expr:
    """A column of nanoseconds as seconds with nine places."""
    import polars

    unit = polars.lit("0.000000001").cast(polars.Decimal(38, 9))
    return polars.col(name).cast(polars.Decimal(38, 9)) * unit


def no_response() -> polars.Expr:
    import polars

    return polars.lit(None, dtype=polars.Int64)


def _word(words: tuple[str, str]) -> polars.Expr:
    """The operation as the format spells it: reads as the first word, writes as the second."""
    import polars

    return polars.when(polars.col("op") == Op.READ).then(polars.lit(words[0])).otherwise(polars.lit(words[1]))


def _only_reads_and_writes() -> polars.Expr:
    import polars

    return polars.col("op") > Op.WRITE


def _off_sector() -> polars.Expr:
    import polars

    return polars.col("offset_bytes") % SECTOR_BYTES != 0


def _off_sectors() -> polars.Expr:
    import polars

    return _off_sector() | (polars.col("size_bytes") % SECTOR_BYTES != 0)


_READS_AND_WRITES = Loss("neither reads nor writes", _only_reads_and_writes, left_out=True)
_SECTOR_STARTS = Loss("moved down to the start of a sector of 512 B", _off_sector)
_SECTORS = Loss("widened to whole sectors of 512 B", _off_sectors)


def _read_msr(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        request_columns(
            polars.col("Timestamp"),
            polars.col("Type").to_physical(),
            polars.col("Offset"),
            polars.col("Size"),
            polars.concat_str("Hostname", polars.lit("."), "DiskNumber"),
            polars.col("ResponseTime") * 100,
        )
    )


def _write_msr(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    named = polars.col("volume").str.extract_groups(r"^(?<host>[^\s,]+)\.(?<disk>\d{1,9})$")
    return frame.select(
        "stamp",
        polars.coalesce(named.struct.field("host"), "volume"),
        polars.coalesce(named.struct.field("disk"), polars.lit("0")),
        _word(("Read", "Write")),
        "offset_bytes",
        "size_bytes",
        polars.col("response_ns").fill_null(0) // 100,
    )


def _read_alibaba(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        request_columns(
            polars.col("timestamp"),
            polars.col("opcode").to_physical(),
            polars.col("offset"),
            polars.col("length"),
            polars.col("device_id"),
            no_response(),
        )
    )


def _write_alibaba(frame: polars.DataFrame) -> polars.DataFrame:
    return frame.select("volume", _word(("R", "W")), "offset_bytes", "size_bytes", "stamp")


def _read_tencent(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        request_columns(
            polars.col("Timestamp"),
            polars.col("IOType").to_physical(),
            polars.col("Offset") * SECTOR_BYTES,
            polars.col("Size") * SECTOR_BYTES,
            polars.col("VolumeID"),
            no_response(),
        )
    )


def _write_tencent(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    first = polars.col("offset_bytes") // SECTOR_BYTES
    end = (polars.col("offset_bytes") + polars.col("size_bytes") + SECTOR_BYTES - 1) // SECTOR_BYTES
    return frame.select("stamp", first.alias("first"), (end - first).alias("size"), _word(("0", "1")), "volume")


def _read_systor17(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        request_columns(
            seconds_to_ns("Timestamp"),
            polars.col("IOType").to_physical(),
            polars.col("Offset"),
            polars.col("Size"),
            polars.col("LUN"),
            seconds_to_ns("Response"),
        )
    )


def _write_systor17(frame: polars.DataFrame) -> polars.DataFrame:
    return frame.select(
        ns_to_seconds("stamp"),
        ns_to_seconds("response_ns"),
        _word(("R", "W")),
        "volume",
        "offset_bytes",
        "size_bytes",
    )


def _read_spc(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        request_columns(
            seconds_to_ns("Timestamp"),
            polars.col("Opcode").to_physical() % 2,
            polars.col("LBA") * SECTOR_BYTES,
            polars.col("Size"),
            polars.col("ASU"),
            no_response(),
        )
    )


def _write_spc(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    return frame.select(
        "volume",
        polars.col("offset_bytes") // SECTOR_BYTES,
        "size_bytes",
        _word(("R", "W")),
        ns_to_seconds("stamp"),
    )


def _read_cloudphysics(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    codes = list(_SCSI.values())
    return frame.select(
        request_columns(
            seconds_to_ns("time"),
            polars.lit(polars.Series(codes, dtype=polars.UInt8)).gather(polars.col("op").to_physical()),
            polars.col("lbn") * SECTOR_BYTES,
            polars.col("size"),
            polars.lit("0"),
            no_response(),
        )
    )


def _write_cloudphysics(frame: polars.DataFrame) -> polars.DataFrame:
    import polars

    code = polars.when(polars.col("op") == Op.FLUSH).then(polars.lit("35")).otherwise(_word(("28", "2a")))
    return frame.select(
        polars.lit(1).alias("version"),
        ns_to_seconds("stamp"),
        code.alias("op"),
        "size_bytes",
        polars.col("offset_bytes") // SECTOR_BYTES,
    )


def _is_trim() -> polars.Expr:
    import polars

    return polars.col("op") == Op.TRIM


def _response_is_unknown() -> polars.Expr:
    import polars

    return polars.col("response_ns").is_null()


MSR = Format(
    name="msr",
    title="MSR Cambridge",
    fields=(
        Field("Timestamp", Kind.INTEGER, digits=18),
        Field("Hostname", Kind.TEXT),
        Field("DiskNumber", Kind.INTEGER, digits=9),
        Field("Type", Kind.WORD, words=("Read", "Write")),
        Field("Offset", Kind.INTEGER, digits=18),
        Field("Size", Kind.INTEGER),
        Field("ResponseTime", Kind.INTEGER),
    ),
    header="Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    writes_header=False,
    clock=Clock.UNIX,
    tick_ns=100,
    epoch_ns=_YEAR_1601_NS,
    read=_read_msr,
    write=_write_msr,
    losses=(_READS_AND_WRITES, Loss("given a response time of 0: it is not known", _response_is_unknown)),
    keeps_response=True,
)
ALIBABA = Format(
    name="alibaba",
    title="Alibaba block traces",
    fields=(
        Field("device_id", Kind.INTEGER),
        Field("opcode", Kind.WORD, words=("R", "W")),
        Field("offset", Kind.INTEGER, digits=18),
        Field("length", Kind.INTEGER),
        Field("timestamp", Kind.INTEGER, digits=18),
    ),
    header="device_id,opcode,offset,length,timestamp",
    writes_header=False,
    clock=Clock.UNIX,
    tick_ns=1000,
    read=_read_alibaba,
    write=_write_alibaba,
    losses=(_READS_AND_WRITES,),
    numbers_volumes=True,
)
TENCENT = Format(
    name="tencent",
    title="Tencent block traces",
    fields=(
        Field("Timestamp", Kind.INTEGER, digits=18),
        Field("Offset", Kind.INTEGER, digits=_SECTOR_DIGITS),
        Field("Size", Kind.INTEGER),
        Field("IOType", Kind.WORD, words=("0", "1")),
        Field("VolumeID", Kind.INTEGER),
    ),
    header="Timestamp,Offset,Size,IOType,VolumeID",
    writes_header=False,
    clock=Clock.UNIX,
    tick_ns=NS_PER_S,
    read=_read_tencent,
    write=_write_tencent,
    losses=(_READS_AND_WRITES, _SECTORS),
    numbers_volumes=True,
)
SYSTOR17 = Format(
    name="systor17",
    title="SYSTOR '17",
    fields=(
        Field("Timestamp", Kind.SECONDS),
        Field("Response", Kind.SECONDS, may_be_empty=True),
        Field("IOType", Kind.WORD, words=("R", "W")),
        Field("LUN", Kind.INTEGER),
        Field("Offset", Kind.INTEGER, digits=18),
        Field("Size", Kind.INTEGER),
    ),
    header="Timestamp,Response,IOType,LUN,Offset,Size",
    clock=Clock.UNIX,
    tick_ns=1,
    read=_read_systor17,
    write=_write_systor17,
    losses=(_READS_AND_WRITES,),
    numbers_volumes=True,
    keeps_response=True,
)
SPC = Format(
    name="spc",
    title="SPC trace file 1.0.1",
    fields=(
        Field("ASU", Kind.INTEGER),
        Field("LBA", Kind.INTEGER, digits=_SECTOR_DIGITS),
        Field("Size", Kind.INTEGER),
        Field("Opcode", Kind.WORD, words=("R", "W", "r", "w")),
        Field("Timestamp", Kind.SECONDS),
    ),
    further_fields=True,
    clock=Clock.START,
    tick_ns=1,
    read=_read_spc,
    write=_write_spc,
    losses=(_READS_AND_WRITES, _SECTOR_STARTS),
    numbers_volumes=True,
)
CLOUDPHYSICS = Format(
    name="cloudphysics",
    title="CloudPhysics vscsi as CSV",
    fields=(
        Field("version", Kind.INTEGER, digits=9),
        Field("time", Kind.SECONDS),
        Field("op", Kind.WORD, words=tuple(_SCSI)),
        Field("size", Kind.INTEGER),
        Field("lbn", Kind.INTEGER, digits=_SECTOR_DIGITS),
    ),
    header="version,time,op,size,lbn",
    clock=Clock.OWN,
    tick_ns=1,
    read=_read_cloudphysics,
    write=_write_cloudphysics,
    losses=(Loss("trims", _is_trim, left_out=True), _SECTOR_STARTS),
    keeps_volume=False,
)
