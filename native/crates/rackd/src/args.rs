//! The command line.

use std::path::PathBuf;

use lexopt::prelude::{Long, Short};

/// The text that `--help` prints.
pub const HELP: &str = "\
rackd: the simulated rack. Serves its drives over NBD, takes orders on a control socket, logs the truth.

usage: rackd --config FILE [--exit-with-parent]

  --config FILE         the rack, as one JSON document
  --exit-with-parent    end when the process that started rackd ends
  --version             print the version
  --help                print this

example:
  cat > rack.json <<'END'
  {\"schema\": 1, \"state_dir\": \"/tmp/lab\", \"control\": \"control.sock\", \"nbd\": \"nbd.sock\",
   \"truth_log\": \"truth.jsonl\",
   \"servers\": {\"srv1\": {\"stack\": \"comreset\", \"ports\": {\"p0\": 1}}},
   \"drives\": [{\"id\": \"d01\", \"model\": \"RL SSD 1\", \"serial\": \"RL000001\", \"firmware\": \"1.0\",
               \"protocol\": \"sata\", \"bytes\": 1073741824, \"port\": 101}],
   \"map\": [[1, 101]]}
  END
  rackd --config rack.json &
  nbdinfo 'nbd+unix:///srv1.p0?socket=/tmp/lab/nbd.sock'

It prints {\"event\":\"ready\",...} once everything answers. Exit status: 0 after SIGTERM or SIGINT, 2 for a bad
command line or configuration. The configuration, the exports and the control socket's operations are described
in docs/reference/rackd.md.
";

/// The arguments of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    /// The configuration file.
    pub config: PathBuf,
    /// Exit together with the parent process.
    pub exit_with_parent: bool,
}

/// The requested action.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Run the rack.
    Run(Args),
    /// Print [`HELP`].
    Help,
    /// Print the version.
    Version,
}

impl Invocation {
    /// Read the command line; on failure, the message for the user.
    pub fn parse(mut parser: lexopt::Parser) -> Result<Self, String> {
        let mut config = None;
        let mut exit_with_parent = false;
        let text = |error: lexopt::Error| format!("{error}; see rackd --help");
        while let Some(argument) = parser.next().map_err(text)? {
            match argument {
                Long("help") | Short('h') => return Ok(Self::Help),
                Long("version") | Short('V') => return Ok(Self::Version),
                Long("config") => config = Some(parser.value().map_err(text)?.into()),
                Long("exit-with-parent") => exit_with_parent = true,
                other => return Err(text(other.unexpected())),
            }
        }
        let config = config.ok_or("--config FILE is missing; see rackd --help")?;
        Ok(Self::Run(Args {
            config,
            exit_with_parent,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Invocation, String> {
        Invocation::parse(lexopt::Parser::from_args(args))
    }

    #[test]
    fn the_options_are_read() {
        let run = Invocation::Run(Args {
            config: "rack.json".into(),
            exit_with_parent: true,
        });
        assert_eq!(
            parse(&["--exit-with-parent", "--config=rack.json"]),
            Ok(run)
        );
        assert_eq!(parse(&["--help"]), Ok(Invocation::Help));
        assert_eq!(parse(&["-V"]), Ok(Invocation::Version));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (args, part) in [
            (&["--confg", "x"][..], "--confg"),
            (&["--config"][..], "--config"),
            (&["rack.json"][..], "rack.json"),
            (&[][..], "--config FILE is missing"),
        ] {
            assert!(parse(args).unwrap_err().contains(part), "{args:?}");
        }
    }
}
