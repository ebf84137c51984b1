//! NBD URIs (the `uri.md` document of the NBD project): `nbd+unix:///NAME?socket=PATH` and `nbd://HOST[:PORT]/NAME`.

use std::path::PathBuf;

use fluent_uri::Uri;

/// The port IANA gave to NBD.
pub const DEFAULT_PORT: u16 = 10809;

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host (name or address) and port.
    Tcp(String, u16),
}

/// An export of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdUri {
    /// Its server's address.
    pub endpoint: Endpoint,
    /// The export's name, empty for the default export.
    pub export: String,
}

/// The error of an invalid NBD URI, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{uri:?} is no NBD URI: {reason}; write nbd+unix:///NAME?socket=PATH or nbd://HOST:PORT/NAME"
)]
pub struct UriError {
    uri: String,
    reason: String,
}

impl NbdUri {
    /// Whether `text` is meant as an NBD URI rather than as a path.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| matches!(scheme.split('+').next(), Some("nbd" | "nbds")))
    }

    /// Parse `text`.
    ///
    /// # Errors
    /// [`UriError`] with the reason.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        parse(text).map_err(|reason| UriError {
            uri: text.to_owned(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<NbdUri, String> {
    let uri = Uri::parse(text).map_err(|error| error.to_string())?;
    let path = uri
        .path()
        .decode()
        .to_string()
        .map_err(|_| "its name is not UTF-8")?;
    let export = path.strip_prefix('/').unwrap_or(&path).to_owned();
    let endpoint = match uri.scheme().as_str() {
        "nbd+unix" => {
            let query = uri.query().map(|query| query.as_str()).unwrap_or_default();
            let sockets: Vec<_> = query
                .split('&')
                .filter_map(|pair| pair.strip_prefix("socket="))
                .collect();
            let [socket] = sockets[..] else {
                return Err("it needs one socket=PATH".to_owned());
            };
            Endpoint::Unix(decode(socket)?.into())
        }
        "nbd" => {
            let authority = uri
                .authority()
                .filter(|authority| !authority.host().is_empty());
            let authority = authority.ok_or("it names no host")?;
            let port = authority
                .port_to_u16()
                .map_err(|_| "its port is no number up to 65535")?;
            let host = authority
                .host()
                .trim_start_matches('[')
                .trim_end_matches(']');
            Endpoint::Tcp(host.to_owned(), port.unwrap_or(DEFAULT_PORT))
        }
        other => return Err(format!("the scheme {other} is not supported")),
    };
    Ok(NbdUri { endpoint, export })
}

fn decode(text: &str) -> Result<String, String> {
    let encoded = fluent_uri::pct_enc::EStr::<fluent_uri::pct_enc::encoder::Query>::new(text);
    let decoded = encoded.ok_or("its socket is badly encoded")?.decode();
    Ok(decoded
        .to_string()
        .map_err(|_| "its socket is not UTF-8")?
        .into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(path: &str, export: &str) -> NbdUri {
        NbdUri {
            endpoint: Endpoint::Unix(path.into()),
            export: export.to_owned(),
        }
    }

    fn tcp(host: &str, port: u16, export: &str) -> NbdUri {
        NbdUri {
            endpoint: Endpoint::Tcp(host.to_owned(), port),
            export: export.to_owned(),
        }
    }

    #[test]
    fn good_uris_are_understood() {
        for (text, uri) in [
            (
                "nbd+unix:///srv1.p0?socket=/run/nbd.sock",
                unix("/run/nbd.sock", "srv1.p0"),
            ),
            ("nbd+unix:///?socket=/a%20b", unix("/a b", "")),
            (
                "nbd://127.0.0.1:7000/drive.d01",
                tcp("127.0.0.1", 7000, "drive.d01"),
            ),
            ("nbd://host", tcp("host", DEFAULT_PORT, "")),
            ("nbd://[::1]/a%2Fb", tcp("::1", DEFAULT_PORT, "a/b")),
        ] {
            assert_eq!(NbdUri::parse(text), Ok(uri));
        }
    }

    #[test]
    fn a_path_is_not_meant_as_a_uri() {
        for text in [
            "nbd:///x",
            "nbd+unix:///x",
            "nbds://host/x",
            "nbds+unix:///x",
        ] {
            assert!(NbdUri::is_meant(text), "{text}");
        }
        for text in ["nbdsectors.img", "nbd", "nbd+1", "/srv/nbd:1", "/dev/nbd0"] {
            assert!(!NbdUri::is_meant(text), "{text}");
        }
    }

    #[test]
    fn bad_uris_say_why() {
        for (text, reason) in [
            ("nbd+unix:///srv1.p0", "socket=PATH"),
            ("nbd+unix:///x?socket=/a&socket=/b", "socket=PATH"),
            ("nbds://host/x", "nbds is not supported"),
            ("nbd:///x", "no host"),
            ("nbd://host:99999/x", "port"),
            ("nbd+unix:///x?socket=%zz", "is no NBD URI"),
        ] {
            let message = NbdUri::parse(text).expect_err(text).to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
