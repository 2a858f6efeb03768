//! A client's way to a gateway over HTTP.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::channel::{Era, initialize};
use crate::wire;

/// One client's connection and session.
pub(crate) struct Http {
    address: String,
    era: Era,
    stream: Option<wire::Stream>,
    pub(crate) session: Option<String>,
    id: u64,
}

impl Http {
    pub(crate) fn new(address: String, era: Era) -> Self {
        Self {
            address,
            era,
            stream: None,
            session: None,
            id: 0,
        }
    }

    /// Sends a request, in a session where the era has sessions; `None` if it was left after a
    /// time.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Option<Value>> {
        if self.era == Era::Legacy && self.session.is_none() {
            self.send("initialize", initialize(), None).await?;
        }
        self.send(method, params, leaves).await
    }

    async fn send(
        &mut self,
        method: &str,
        params: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Option<Value>> {
        self.id += 1;
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n",
            self.address
        );
        match (self.era, &self.session) {
            (Era::Modern, _) => head += &wire::mirrored(method, &params),
            (Era::Legacy, Some(session)) => head += &format!("mcp-session-id: {session}\r\n"),
            (Era::Legacy, None) => {}
        }
        let params = self.era.params(params);
        let body = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        // an answer that is not read to its end ends the connection
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(&self.address).await?),
        };
        wire::write(&mut stream, &head, &body.to_string()).await?;
        let read = wire::read(&mut stream);
        let heard = match leaves {
            None => read.await?,
            Some(after) => match timeout(after, read).await {
                Ok(heard) => heard?,
                Err(_) => return Ok(None),
            },
        };
        let heard = heard.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.stream = Some(stream);
        if heard.session.is_some() {
            self.session = heard.session;
        }
        if heard.first.contains(" 404 ") {
            // the session has ended: a client opens another
            self.session = None;
        }
        Ok(Some(
            serde_json::from_slice(&heard.body).unwrap_or_default(),
        ))
    }

    /// Returns `true` if the client has sessions.
    pub(crate) const fn has_sessions(&self) -> bool {
        matches!(self.era, Era::Legacy)
    }

    /// Ends the session, and with it what it has at servers.
    pub(crate) async fn leave(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let head = format!(
            "DELETE /mcp HTTP/1.1\r\nhost: {}\r\nmcp-session-id: {session}\r\n",
            self.address
        );
        if let Ok(stream) = TcpStream::connect(&self.address).await {
            let mut stream = BufReader::new(stream);
            if wire::write(&mut stream, &head, "").await.is_ok() {
                let _answered = wire::read(&mut stream).await;
            }
        }
    }
}
