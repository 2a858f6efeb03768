//! The target of an upstream.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;

use callward_core::{BoxFuture, InvalidValue, redact};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

use crate::wire::header;

/// The target of an upstream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A program started as a child, spoken to over its standard input and output.
    Command(CommandSpec),
    /// A streamable HTTP endpoint, or the event stream of a server of 2024-11-05.
    Http(HttpSpec),
    /// Anything that yields a reader and a writer, asked again for each reconnection.
    Io(Io),
}

/// A program to start.
///
/// The child gets a small environment: what programs need to find their files (`PATH`, `HOME` and
/// the like), and what is given here. Secrets of this process stay with it unless
/// [`whole_environment`](Self::whole_environment) says otherwise.
#[derive(Clone)]
#[non_exhaustive]
pub struct CommandSpec {
    /// The program, looked up in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to its environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Values that are left out of what it writes to standard error, beside those of `env` and
    /// those that look like secrets.
    pub secrets: Vec<String>,
    /// Whether it inherits the whole environment. Default: no.
    pub whole_environment: bool,
}

impl CommandSpec {
    /// Names the program.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            whole_environment: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// Without secrets: of the environment the names are shown.
impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args = self.args.iter().map(|arg| arg.to_string_lossy());
        let command = redact::command(&self.program.to_string_lossy(), args);
        f.debug_struct("CommandSpec")
            .field("command", &command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("whole_environment", &self.whole_environment)
            .finish()
    }
}

/// A streamable HTTP endpoint, or the event stream of a server of 2024-11-05, which is recognized
/// when it refuses a POST: one URL, `http` or `https`, and headers sent with each request.
#[derive(Clone)]
pub struct HttpSpec {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
}

impl HttpSpec {
    /// Names the endpoint.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if the text is not an URL, or neither `http` nor `https`.
    pub fn new(url: &str) -> Result<Self, InvalidValue> {
        let unusable = |why: &str| {
            InvalidValue::new(format!(
                "{:?} cannot be used{why}: it must begin with http:// or https:// and name a host",
                redact::url(url)
            ))
        };
        let url = Url::parse(url).map_err(|error| unusable(&format!(" ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(unusable(""));
        }
        Ok(Self {
            url,
            headers: HeaderMap::new(),
        })
    }

    /// Adds a header to every request, credentials for example. Its value is kept out of logs.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] if name or value cannot travel in HTTP, or the protocol sets the header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidValue> {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| InvalidValue::new(format!("{name:?} is not a header name")))?;
        let reserved = [
            "accept",
            "content-type",
            header::PROTOCOL_VERSION.as_str(),
            header::SESSION_ID.as_str(),
            header::METHOD.as_str(),
            header::NAME.as_str(),
            header::IDEMPOTENCY_KEY.as_str(),
        ];
        if reserved.contains(&parsed.as_str()) || parsed.as_str().starts_with(header::PARAM_PREFIX)
        {
            return Err(InvalidValue::new(format!(
                "the header {name} is set by the protocol: leave it out"
            )));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            InvalidValue::new(format!("the value of {name} cannot travel in a header"))
        })?;
        value.set_sensitive(true);
        self.headers.insert(parsed, value);
        Ok(self)
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // headers and URL may hold credentials
        f.debug_struct("HttpSpec")
            .field("url", &redact::url(self.url.as_str()))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// What a connector yields: where to read from, and where to write to.
pub type Connect = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

type Connector = dyn Fn() -> BoxFuture<'static, io::Result<Connect>> + Send + Sync;

/// A connector: a closure that yields a reader and a writer each time it is called.
#[derive(Clone)]
pub struct Io(Arc<Connector>);

impl Io {
    /// Takes the closure. It is called for the first connection and for each one after a loss.
    pub fn new<F, Fut>(connect: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<Connect>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(connect())))
    }

    pub(super) fn connect(&self) -> BoxFuture<'static, io::Result<Connect>> {
        (self.0)()
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Io(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_cannot_work_says_why() {
        for (url, word) in [
            ("nonsense", "without a base): it must begin with http://"),
            ("ftp://host/", "http://"),
            ("file:///tmp/x", "http://"),
        ] {
            let error = HttpSpec::new(url).expect_err(url).to_string();
            assert!(error.contains(word), "{url}: {error}");
        }
        let spec = HttpSpec::new("http://localhost:1/mcp").unwrap();
        assert!(spec.clone().with_header("Mcp-Name", "x").is_err());
        assert!(spec.clone().with_header("mcp-param-x", "x").is_err());
        assert!(spec.clone().with_header("a b", "x").is_err());
        let spec = spec.with_header("Authorization", "Bearer secret").unwrap();
        let with_query = HttpSpec::new("http://u:secret@h/mcp?key=secret").unwrap();
        let mut command = CommandSpec::new("x").with_args(["--token", "secret"]);
        command.env.insert("KEY".into(), "secret".into());
        let shown = format!("{spec:?} {with_query:?} {command:?}");
        assert!(
            shown.contains("authorization") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
