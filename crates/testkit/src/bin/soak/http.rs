//! As much of HTTP/1.1 as a gateway, its servers and its clients say to each other.

use std::io;
use std::time::Duration;

pub(crate) use callward_testkit::hostile::{Message, Stream, read};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::channel::{Era, MODERN, initialize, with_client};

/// Writes a head, of which the length is left out, and a body.
pub(crate) async fn write(stream: &mut Stream, head: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let message = format!("{head}content-length: {length}\r\n\r\n{body}");
    stream.write_all(message.as_bytes()).await
}

/// One client's connection and session.
pub(crate) struct Http {
    address: String,
    pub(crate) era: Era,
    stream: Option<Stream>,
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
            (Era::Modern, _) => {
                head += &format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n");
                if let Some(name) = params["name"].as_str() {
                    head += &format!("mcp-name: {name}\r\n");
                }
            }
            (Era::Legacy, Some(session)) => head += &format!("mcp-session-id: {session}\r\n"),
            (Era::Legacy, None) => {}
        }
        let params = with_client(self.era, params);
        let body = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        // an answer that is not read to its end ends the connection
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(TcpStream::connect(&self.address).await?),
        };
        write(&mut stream, &head, &body.to_string()).await?;
        let answer = read(&mut stream);
        let heard = match leaves {
            None => answer.await?,
            Some(after) => match timeout(after, answer).await {
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
            if write(&mut stream, &head, "").await.is_ok() {
                let _answered = read(&mut stream).await;
            }
        }
    }
}
