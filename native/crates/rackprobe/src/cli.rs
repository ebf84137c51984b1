//! The command line.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand};
use sector::{Drive, Expected, SECTOR_BYTES};

use crate::failure::Failure;
use crate::io::Access;
use crate::target::Target;

/// I/O and timing probe of Rackloop.
///
/// Writes and verifies identified sectors, and stamps events in nanoseconds of CLOCK_MONOTONIC.
/// A TARGET is a block device, a file, nbd+unix:///NAME?socket=PATH or nbd://HOST:PORT/NAME. Addresses (LBA) count
/// sectors of 4 KiB. Results are JSON on standard output. Exit status: 0 done, 1 wrong data, 2 bad input,
/// 3 the target failed.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write identified sectors; one of them (--sectors 1) labels a drive
    #[command(
        after_help = "Example: rackprobe write 'nbd+unix:///drive.d01?socket=/run/lab/nbd.sock' \\\n  \
        --serial RL000001 --allow-write RL000001 --sectors 1 --generation 1 --seed 7"
    )]
    Write(WriteArgs),
    /// Read sectors back and report a verdict on each
    #[command(
        after_help = "Example: rackprobe verify /dev/nvme0n1 --serial RL000001 --generation 1 --sectors 256"
    )]
    Verify(VerifyArgs),
    /// Measure how long drives take to answer again after remaps
    #[command(
        after_help = "The configuration, one line on standard input or --config FILE:\n  \
        {\"targets\":[{\"name\":\"srv1.p0\",\"target\":\"nbd+unix:///srv1.p0?socket=/run/lab/nbd.sock\",\"lba\":0}]}\n\
        Then commands, one a line, on standard input:\n  \
        {\"op\":\"arm\",\"id\":1,\"target\":\"srv1.p0\",\"expect\":{\"serial\":\"RL000002\",\"generation\":1},\"timeout_ms\":5000}\n  \
        {\"op\":\"quit\"}"
    )]
    Remap(RemapArgs),
    /// Watch the I/O of an unchanged mapping: longest stall, percentiles, errors, lost I/O, wrong data
    #[command(
        after_help = "Example: rackprobe watch /dev/nvme0n1 --serial RL000001 --sectors 256 --pace-us 500 \
        --duration-ms 10000\nIt ends with {\"op\":\"quit\"}, with the end of standard input, or after --duration-ms."
    )]
    Watch(WatchArgs),
    /// Read a block, wait for the drive behind the port to be swapped, read the next: the worst case
    #[command(
        after_help = "Example: rackprobe swap /dev/nvme0n1 --serial RL000001 --block 4KiB --reads 100\n\
        After each {\"event\":\"read_done\"} it waits for {\"op\":\"next\",\"lba\":2048,\"expect\":{\"serial\":\"RL000002\",\"generation\":1}};\n\
        with --no-swap it reads on at once, for comparison."
    )]
    Swap(SwapArgs),
    /// Hold a drive of this machine for a writer: check its identity and its users, and claim it (O_EXCL)
    #[command(
        after_help = "Example: rackprobe hold /dev/sda --serial RL000001 --size 4000787030016 --wwn 5000c500a0000001\n\
        It prints {\"event\":\"held\",\"name\":...} with the name under /dev/disk/by-id that the drive is to be written by, answers\n\
        {\"op\":\"check\",\"id\":1} with {\"event\":\"checked\",\"id\":1,\"reasons\":[...]}, and holds until standard input ends."
    )]
    Hold(HoldArgs),
    /// Stamp every device event of this machine: the kernel's, and udev's once a device has its names
    #[command(
        after_help = "Example: rackprobe uevents --subsystem block --subsystem nvme --subsystem pci\n\
        It ends with {\"op\":\"quit\"} or with the end of standard input."
    )]
    Uevents(UeventsArgs),
    /// Serve a drive of this machine by NBD over standard input and output, read-only without --allow-write
    #[command(
        after_help = "Example: rackprobe serve /dev/sda --serial RL000001 --size 4000787030016 --allow-write RL000001\n\
        The export is called by the serial, and standard input and output are its only connection, as libnbd's\n\
        nbd_connect_command makes one. It ends with its input."
    )]
    Serve(ServeArgs),
    /// Measure generation and verification of identified sectors on a memory buffer, on one core
    #[command(after_help = "Example: rackprobe bench --bytes 64MiB --rounds 20")]
    Bench(BenchArgs),
}

/// A serial, and the guard's permission to write to its drive.
#[derive(Debug, Args)]
pub struct Permission {
    /// Serial of the drive, stamped into every sector
    #[arg(long)]
    pub serial: String,
    /// The serial again, from the guard that checked that this drive may be erased
    #[arg(long, value_name = "SERIAL")]
    pub allow_write: Option<String>,
    /// The caller holds the block device exclusively (O_EXCL) until this ends; without it the device
    /// is claimed here, and refused if it is held by another process
    #[arg(long, requires = "allow_write")]
    pub claimed: bool,
}

impl Permission {
    /// The drive of a read-only command.
    pub fn named_drive(&self) -> Result<Drive, Failure> {
        drive(&self.serial)
    }

    /// The access with which to open the drive that may be written.
    pub fn access(&self) -> Access {
        Access::Write {
            claims: !self.claimed,
        }
    }

    /// The drive that may be written.
    pub fn drive(&self) -> Result<Drive, Failure> {
        match &self.allow_write {
            Some(allowed) => require_same(allowed, &self.serial).and_then(|()| drive(&self.serial)),
            None => Err(Failure::BadInput(format!(
                "writing erases data: give --allow-write {} once it is sure that this drive may be erased",
                self.serial
            ))),
        }
    }
}

fn require_same(allowed: &str, serial: &str) -> Result<(), Failure> {
    if allowed == serial {
        return Ok(());
    }
    Err(Failure::BadInput(format!(
        "--allow-write is for drive {allowed}, not for {serial}: nothing is written"
    )))
}

fn drive(serial: &str) -> Result<Drive, Failure> {
    Drive::new(serial).map_err(|error| Failure::BadInput(error.to_string()))
}

/// The identity of a write.
#[derive(Debug, Args)]
pub struct WriteIdentity {
    /// Generation of the write: a later write has a higher one
    #[arg(long, default_value_t = 1)]
    pub generation: u64,
    /// Seed of the run, part of every payload
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// The expected content of reads.
#[derive(Debug, Args)]
pub struct ExpectArgs {
    /// Serial of the expected drive
    #[arg(long)]
    pub serial: String,
    /// Expected generation
    #[arg(long, default_value_t = 1)]
    pub generation: u64,
    /// Expected seed; without it any seed is right
    #[arg(long)]
    pub seed: Option<u64>,
}

impl ExpectArgs {
    /// Check the arguments; returns the expectation.
    pub fn expected(&self) -> Result<Expected, Failure> {
        Ok(Expected {
            drive: drive(&self.serial)?,
            generation: self.generation,
            seed: self.seed,
        })
    }
}

/// A range of sectors, and the size of requests.
#[derive(Debug, Args)]
pub struct Range {
    /// First sector
    #[arg(long, default_value_t = 0)]
    pub start_lba: u64,
    /// Number of sectors
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub sectors: u64,
    /// Bytes of one request
    #[arg(long, default_value = "1MiB", value_parser = block_bytes)]
    pub block: u64,
}

impl Range {
    /// Sectors of one request.
    pub fn block_sectors(&self) -> u64 {
        self.block / SECTOR_BYTES as u64
    }

    /// Bytes of the whole range.
    pub fn bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES as u64
    }

    /// Refuse a range outside the target, or a block that is too large for it.
    pub fn check(&self, target: &Target) -> Result<(), Failure> {
        let there = target.bytes() / SECTOR_BYTES as u64;
        if self
            .start_lba
            .checked_add(self.sectors)
            .is_none_or(|end| end > there)
        {
            return Err(Failure::BadInput(format!(
                "{}: {} sectors from sector {} do not fit: it has {there} sectors of 4 KiB",
                target.name(),
                self.sectors,
                self.start_lba
            )));
        }
        if self.block > target.max_request_bytes() {
            return Err(Failure::BadInput(format!(
                "{}: a block of {} bytes is too long: it takes {} bytes at most",
                target.name(),
                self.block,
                target.max_request_bytes()
            )));
        }
        Ok(())
    }
}

fn block_bytes(text: &str) -> Result<u64, String> {
    let bytes = text
        .parse::<ByteSize>()
        .map_err(|error| format!("write it like 4KiB or 1MiB: {error}"))?
        .as_u64();
    let most = u64::from(nbd::proto::MAX_REQUEST_BYTES);
    if bytes == 0 || bytes % SECTOR_BYTES as u64 != 0 || bytes > most {
        return Err("it must be a multiple of 4KiB, at most 64MiB".to_owned());
    }
    Ok(bytes)
}

/// The queue depth.
#[derive(Debug, Args)]
pub struct Queue {
    /// Requests in flight
    #[arg(long, default_value_t = 4, value_parser = queue_depth)]
    pub queue_depth: usize,
}

fn queue_depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(depth @ 1..=256) => Ok(depth),
        _ => Err("it is a number from 1 to 256".to_owned()),
    }
}

/// `write`.
#[derive(Debug, Args)]
pub struct WriteArgs {
    /// NBD URI, block device or file
    pub target: String,
    #[command(flatten)]
    pub permission: Permission,
    #[command(flatten)]
    pub identity: WriteIdentity,
    #[command(flatten)]
    pub range: Range,
    #[command(flatten)]
    pub queue: Queue,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// NBD URI, block device or file
    pub target: String,
    #[command(flatten)]
    pub expected: ExpectArgs,
    #[command(flatten)]
    pub range: Range,
    #[command(flatten)]
    pub queue: Queue,
}

/// `remap`.
#[derive(Debug, Args)]
pub struct RemapArgs {
    /// Configuration file; without it the configuration is the first line of standard input
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Stamp the kernel's block device events too
    #[arg(long)]
    pub uevents: bool,
}

/// `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// NBD URI, block device or file
    pub target: String,
    #[command(flatten)]
    pub permission: Permission,
    #[command(flatten)]
    pub range: Range,
    /// Expected generation of what is read, or the first generation written
    #[arg(long, default_value_t = 1)]
    pub generation: u64,
    /// Expected seed (without it any is right), or the seed written (without it 0)
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write each block under a new generation before it is read; needs --allow-write
    #[arg(long)]
    pub write: bool,
    /// Time from one I/O to the next; 0 goes on at once
    #[arg(long, default_value_t = 0)]
    pub pace_us: u64,
    /// Spin for completions instead of sleeping: more precise, occupies a core
    #[arg(long)]
    pub spin: bool,
    /// Time from one interval event to the next
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub interval_ms: u64,
    /// End after this time
    #[arg(long)]
    pub duration_ms: Option<u64>,
    /// At the end, an I/O that does not complete within this time counts as lost
    #[arg(long, default_value_t = 2000)]
    pub drain_ms: u64,
}

/// `swap`.
#[derive(Debug, Args)]
pub struct SwapArgs {
    /// NBD URI, block device or file
    pub target: String,
    #[command(flatten)]
    pub expected: ExpectArgs,
    #[command(flatten)]
    pub range: Range,
    /// Number of blocks to read; they go through the range and start again at its end
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub reads: u64,
    /// Do not wait for a swap between the reads
    #[arg(long)]
    pub no_swap: bool,
}

/// The identity that a drive of this machine must have.
#[derive(Debug, Args)]
pub struct IdentityArgs {
    /// The serial number it must have
    #[arg(long)]
    pub serial: String,
    /// The bytes it must have
    #[arg(long, value_name = "BYTES")]
    pub size: u64,
    /// The World Wide Name it must have, in hexadecimal digits
    #[arg(long)]
    pub wwn: Option<String>,
    /// The EUI-64 it must have, or its NGUID
    #[arg(long)]
    pub eui64: Option<String>,
    /// The NGUID it must have, or its EUI-64
    #[arg(long)]
    pub nguid: Option<String>,
}

/// `uevents`.
#[derive(Debug, Args)]
pub struct UeventsArgs {
    /// Events of this subsystem; may be given several times, without it those of all
    #[arg(long, value_name = "NAME")]
    pub subsystem: Vec<String>,
}

/// `hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// The whole drive's node
    pub node: String,
    #[command(flatten)]
    pub identity: IdentityArgs,
}

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The whole drive's node
    pub node: String,
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// The serial again, from the guard that checked that this drive may be erased
    #[arg(long, value_name = "SERIAL")]
    pub allow_write: Option<String>,
    /// The caller holds the block device exclusively (O_EXCL) until this ends
    #[arg(long, requires = "allow_write")]
    pub claimed: bool,
}

impl ServeArgs {
    /// Whether the drive may be written.
    pub fn may_write(&self) -> Result<bool, Failure> {
        if let Some(allowed) = &self.allow_write {
            require_same(allowed, &self.identity.serial)?;
        }
        Ok(self.allow_write.is_some())
    }
}

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Size of the buffer
    #[arg(long, default_value = "64MiB", value_parser = block_bytes)]
    pub bytes: u64,
    /// Number of times the buffer is written and verified
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
}
