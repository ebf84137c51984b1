//! The command line.

use std::path::PathBuf;

use lexopt::prelude::{Long, Short};

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
    /// Run the program.
    Run(Args),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

impl Invocation {
    /// Read the command line; on failure, the message for the user.
    ///
    /// # Errors
    /// One line that names what is wrong, and where the `program` tells more.
    pub fn parse(program: &str, parser: lexopt::Parser) -> Result<Self, String> {
        let none = |_: &str, _: &mut lexopt::Parser| Ok(false);
        Self::parse_with(program, parser, none)
    }

    /// The same for a program with more options: `own` is asked about every unknown one, takes its value from the parser,
    /// and says whether it knows the option.
    ///
    /// # Errors
    /// As of [`Invocation::parse`].
    pub fn parse_with(
        program: &str,
        mut parser: lexopt::Parser,
        mut own: impl FnMut(&str, &mut lexopt::Parser) -> Result<bool, lexopt::Error>,
    ) -> Result<Self, String> {
        let mut config = None;
        let mut exit_with_parent = false;
        let text = |error: lexopt::Error| format!("{error}; see {program} --help");
        while let Some(argument) = parser.next().map_err(text)? {
            match argument {
                Long("help") | Short('h') => return Ok(Self::Help),
                Long("version") | Short('V') => return Ok(Self::Version),
                Long("config") => config = Some(parser.value().map_err(text)?.into()),
                Long("exit-with-parent") => exit_with_parent = true,
                Long(name) => {
                    let name = name.to_owned();
                    if !own(&name, &mut parser).map_err(text)? {
                        return Err(text(Long(&name).unexpected()));
                    }
                }
                other => return Err(text(other.unexpected())),
            }
        }
        let config =
            config.ok_or_else(|| format!("--config FILE is missing; see {program} --help"))?;
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
        Invocation::parse("rackd", lexopt::Parser::from_args(args))
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
