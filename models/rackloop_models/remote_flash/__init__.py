"""ReFlex on small cores: a box of drives that serves remote flash, by its cores, its load and its objectives."""

from rackloop_models.remote_flash._admission import BOUNDS_US as BOUNDS_US
from rackloop_models.remote_flash._admission import OFFERED_TOKENS_PER_S as OFFERED_TOKENS_PER_S
from rackloop_models.remote_flash._admission import WRITE_PERCENTS as WRITE_PERCENTS
from rackloop_models.remote_flash._admission import Admission as Admission
from rackloop_models.remote_flash._admission import CurvePoint as CurvePoint
from rackloop_models.remote_flash._admission import admissions as admissions
from rackloop_models.remote_flash._admission import p95_by_mix as p95_by_mix
from rackloop_models.remote_flash._admission import reflex as reflex
from rackloop_models.remote_flash._admission import slo_curve as slo_curve
from rackloop_models.remote_flash._admission import tokens_within as tokens_within
from rackloop_models.remote_flash._claims import Measured as Measured
from rackloop_models.remote_flash._claims import claims as claims
from rackloop_models.remote_flash._claims import wire_gigabits_per_s as wire_gigabits_per_s
from rackloop_models.remote_flash._hardware import A72 as A72
from rackloop_models.remote_flash._hardware import CORE_KINDS as CORE_KINDS
from rackloop_models.remote_flash._hardware import X86 as X86
from rackloop_models.remote_flash._hardware import CoreKind as CoreKind
from rackloop_models.remote_flash._runs import BoxLoad as BoxLoad
from rackloop_models.remote_flash._runs import run_loads as run_loads
from rackloop_models.remote_flash._scaling import Loaded as Loaded
from rackloop_models.remote_flash._scaling import Scaled as Scaled
from rackloop_models.remote_flash._scaling import added_s as added_s
from rackloop_models.remote_flash._scaling import large_reads_bytes_per_s as large_reads_bytes_per_s
from rackloop_models.remote_flash._scaling import load_sweep as load_sweep
from rackloop_models.remote_flash._scaling import offered_up_to as offered_up_to
from rackloop_models.remote_flash._scaling import scaling as scaling
