"""The comma-separated formats of public block traces, as their publishers describe them.

MSR Cambridge and SYSTOR '17 are at the SNIA IOTTA repository (traces 388 and 4928), Alibaba's and Tencent's block
traces come with the papers at IISWC '20 and ATC '20, SPC is the Storage Performance Council's trace file format 1.0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackloop_traces._expressions import (
    READS_AND_WRITES,
    SECTOR_STARTS,
    SECTORS,
    no_response,
    ns_to_seconds,
    request_columns,
    seconds_to_ns,
    word,
)
from rackloop_traces._format import NS_PER_S, SECTOR_BYTES, SECTOR_DIGITS, Clock, Field, Format, Kind, Loss

if TYPE_CHECKING:
    import polars

_YEAR_1601_NS = -11_644_473_600 * NS_PER_S


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

    named = polars.col("volume").str.extract_groups(r"^(?<host>[^\s,]+)\.(?<disk>[0-9]{1,9})$")
    return frame.select(
        "stamp",
        polars.coalesce(named.struct.field("host"), "volume"),
        polars.coalesce(named.struct.field("disk"), polars.lit("0")),
        word(("Read", "Write")),
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
    return frame.select("volume", word(("R", "W")), "offset_bytes", "size_bytes", "stamp")


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
    return frame.select("stamp", first.alias("first"), (end - first).alias("size"), word(("0", "1")), "volume")


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
        word(("R", "W")),
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
        word(("R", "W")),
        ns_to_seconds("stamp"),
    )


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
    losses=(READS_AND_WRITES, Loss("given a response time of 0: it is not known", _response_is_unknown)),
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
    losses=(READS_AND_WRITES,),
    numbers_volumes=True,
)
TENCENT = Format(
    name="tencent",
    title="Tencent block traces",
    fields=(
        Field("Timestamp", Kind.INTEGER, digits=18),
        Field("Offset", Kind.INTEGER, digits=SECTOR_DIGITS),
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
    losses=(READS_AND_WRITES, SECTORS),
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
    losses=(READS_AND_WRITES,),
    numbers_volumes=True,
    keeps_response=True,
)
SPC = Format(
    name="spc",
    title="SPC trace file 1.0.1",
    fields=(
        Field("ASU", Kind.INTEGER),
        Field("LBA", Kind.INTEGER, digits=SECTOR_DIGITS),
        Field("Size", Kind.INTEGER),
        Field("Opcode", Kind.WORD, words=("R", "W", "r", "w")),
        Field("Timestamp", Kind.SECONDS),
    ),
    further_fields=True,
    clock=Clock.START,
    tick_ns=1,
    read=_read_spc,
    write=_write_spc,
    losses=(READS_AND_WRITES, SECTOR_STARTS),
    numbers_volumes=True,
    in_order=True,
)
