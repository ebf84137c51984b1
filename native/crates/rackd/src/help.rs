//! The help of the command line.

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
