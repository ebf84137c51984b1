"""Tail latency and costs of local erasure coding: by equations, by trial and measured."""

from rackloop_models.erasure import TARGET, ChosenCode, choose_code, decoding_failure, metadata_replicas
from rackloop_models.tail_latency._analytic import latency_with_code, latency_without_code
from rackloop_models.tail_latency._codes import (
    CODEWORDS,
    FAILURE_PROBABILITIES,
    FIGURE_4_TARGET,
    SECTOR_BYTES,
    Redundancy,
    RedundancyStep,
    redundancy_by_length,
    redundancy_steps,
    table_of_codes,
)
from rackloop_models.tail_latency._distribution import LatencyPmf
from rackloop_models.tail_latency._measured import (
    MeasuredReads,
    ReadsToMeasure,
    attainable_retry_s,
    measure_reads,
    paper_drive,
)
from rackloop_models.tail_latency._monte_carlo import (
    Agreement,
    agreement,
    distribution,
    trials_with_code,
    trials_without_code,
)
from rackloop_models.tail_latency._overhead import (
    BENCHMARKS,
    FileSizes,
    capacity_overhead,
    read_file_sizes,
    synthetic_file_sizes,
)
from rackloop_models.tail_latency._own_codec import own_decoding
from rackloop_models.tail_latency._paper import (
    PUBLISHED_OVERHEADS,
    PUBLISHED_REDUCTIONS,
    SOURCE,
    PublishedOverhead,
    PublishedReduction,
)
from rackloop_models.tail_latency._reading import (
    SECTOR_S,
    Charge,
    LocalErasure,
    Reading,
    hardware_decoding,
    software_decoding,
)
from rackloop_models.tail_latency._slowdown import HARDWARE, SOFTWARE, WORKLOADS, Codec, Slowdown, Workload, slowdowns
from rackloop_models.tail_latency._update import Update, UpdateCost, UpdateMethod, update_costs

__all__ = [
    "BENCHMARKS",
    "CODEWORDS",
    "FAILURE_PROBABILITIES",
    "FIGURE_4_TARGET",
    "HARDWARE",
    "PUBLISHED_OVERHEADS",
    "PUBLISHED_REDUCTIONS",
    "SECTOR_BYTES",
    "SECTOR_S",
    "SOFTWARE",
    "SOURCE",
    "TARGET",
    "WORKLOADS",
    "Agreement",
    "Charge",
    "ChosenCode",
    "Codec",
    "FileSizes",
    "LatencyPmf",
    "LocalErasure",
    "MeasuredReads",
    "PublishedOverhead",
    "PublishedReduction",
    "Reading",
    "ReadsToMeasure",
    "Redundancy",
    "RedundancyStep",
    "Slowdown",
    "Update",
    "UpdateCost",
    "UpdateMethod",
    "Workload",
    "agreement",
    "attainable_retry_s",
    "capacity_overhead",
    "choose_code",
    "decoding_failure",
    "distribution",
    "hardware_decoding",
    "latency_with_code",
    "latency_without_code",
    "measure_reads",
    "metadata_replicas",
    "own_decoding",
    "paper_drive",
    "read_file_sizes",
    "redundancy_by_length",
    "redundancy_steps",
    "slowdowns",
    "software_decoding",
    "synthetic_file_sizes",
    "table_of_codes",
    "trials_with_code",
    "trials_without_code",
    "update_costs",
]
