//! drivesim: experiments on a drive model in virtual time.

use std::process::ExitCode;

use clap::Parser;

/// Experiments on Rackloop's drive models, in virtual time.
///
/// Reads one JSON document on standard input: drives and a sequence of experiments. Prints
/// a JSON line for each result as it comes. Same document, same results. Exit status: 0 done, 2 bad input, 3 the model
/// failed.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 110,
    after_help = "Example:\n  \
    drivesim <<'END'\n  \
    {\"schema\":1, \"timing\":{\"kind\":\"ideal\"}, \"bytes\":1073741824, \"sector_bytes\":512, \"seed\":1,\n   \
    \"experiments\":[\n    \
    {\"kind\":\"load\", \"name\":\"fill\", \"pattern\":\"sequential\", \"read_percent\":0, \"block_bytes\":131072,\n     \
    \"arrivals\":{\"depth\":32}, \"until\":{\"passes\":1}},\n    \
    {\"kind\":\"load\", \"name\":\"busy\", \"pattern\":\"random\", \"block_bytes\":4096,\n     \
    \"arrivals\":{\"per_second\":100}, \"until\":{\"requests\":1000}, \"interval_s\":1},\n    \
    {\"kind\":\"seek\", \"name\":\"arm\", \"operation\":\"read\", \"distances\":[0, 0.5, 1], \"pairs\":10},\n    \
    {\"kind\":\"idle\", \"name\":\"rest\", \"seconds\":60},\n    \
    {\"kind\":\"sanitize\", \"name\":\"as new\"}]}\n  \
    END\n\
    Every key is described in docs/reference/drive-models.md."
)]
struct Cli {}

fn main() -> ExitCode {
    Cli::parse();
    match drivesim::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("drivesim: {failure}");
            failure.exit_status().into()
        }
    }
}
