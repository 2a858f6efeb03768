//! An HTTP server that fails where it is instructed to, and counts which calls it could have run.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use callward_core::{Delivery, ToolCall, ToolServer};
use callward_mcp::client::{EraChoice, Upstream};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{Ended, object_end};
use crate::script::{DISCOVERED, INITIALIZED, LONG, call};
use crate::script_http::{Request, serving, upstream_at};

pub(crate) const RESULT: &str = r#""result":{"content":[{"type":"text","text":"{\"}"}]}"#;

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Fin,
    Reset,
}

/// What is done to the next request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The connection ends as soon as it is made.
    Closed(End),
    /// That many bytes are read, then the connection ends.
    Read(usize, End),
    /// That many bytes are read, or all there are; then nothing happens until the client gives up.
    Stall(usize),
    /// It is read whole; that many bytes of this answer are written, then the connection ends.
    Answer(fn(u64) -> String, usize, End),
}

/// The outcome of a request that met a fault.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Whether its connection had carried another one before.
    pub(crate) reused: bool,
    pub(crate) read: usize,
    /// Whether the request was read to its end.
    pub(crate) whole: bool,
    pub(crate) written: String,
    /// Whether the answer was written to its end.
    pub(crate) answered: bool,
}

#[derive(Debug, Default)]
struct State {
    fault: Option<Fault>,
    seen: VecDeque<Seen>,
    /// How often each call was run, by its number.
    runs: HashMap<u64, usize>,
    /// How many requests, or connections to be closed at once, there were.
    requests: usize,
    /// Whether the client has asked for a stream of the server's own, and knows that there is none.
    refused_stream: bool,
}

/// A server that answers what it is asked, but for what is to fail.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
    calls: u64,
    /// How many calls reached no server.
    pub(crate) missed: usize,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let accepting = serving(listener, move |stream| {
            let state = shared.clone();
            async move {
                // an error means that the client is gone
                let _ = serve(stream, &state).await;
            }
        });
        Self {
            address,
            state,
            accepting,
            calls: 0,
            missed: 0,
        }
    }

    pub(crate) async fn upstream(&self, era: EraChoice) -> Upstream {
        let upstream = upstream_at(self.address, |options| options.era = era);
        upstream.ready(LONG).await.unwrap();
        while era == EraChoice::Legacy && !self.state.lock().refused_stream {
            tokio::task::yield_now().await;
        }
        upstream
    }

    /// Makes a call of its own number, padded with that many bytes. Returns its end, and how often
    /// it was run.
    pub(crate) async fn call(&mut self, upstream: &Upstream, padding: usize) -> (Ended, usize) {
        let call = self.next_call(padding);
        let ended = upstream.call(call).await;
        (ended, self.runs(self.calls))
    }

    /// Makes a call that is given up when the server stalls. Returns how often it was run.
    pub(crate) async fn given_up(&mut self, upstream: &Upstream, count: usize) -> (usize, Seen) {
        self.state.lock().fault = Some(Fault::Stall(count));
        let running = tokio::spawn(upstream.call(self.next_call(0)));
        let number = self.calls;
        let seen = loop {
            if let Some(seen) = self.state.lock().seen.pop_front() {
                break seen;
            }
            tokio::task::yield_now().await;
        };
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        // whatever would be sent again is sent by now
        let (ended, runs) = self.call(upstream, 0).await;
        assert!(ended.is_ok() && runs == 1, "{ended:?}");
        (self.runs(number), seen)
    }

    fn next_call(&mut self, padding: usize) -> ToolCall {
        self.calls += 1;
        let (number, padding) = (self.calls, "x".repeat(padding));
        call(
            "x",
            &format!(r#"{{"padding":"{padding}","call":{number}}}"#),
        )
    }

    fn runs(&self, number: u64) -> usize {
        self.state.lock().runs.get(&number).copied().unwrap_or(0)
    }

    /// Makes a call that meets a fault.
    pub(crate) async fn faulty(
        &mut self,
        upstream: &Upstream,
        fault: Fault,
        padding: usize,
    ) -> (Ended, usize, Seen) {
        self.state.lock().fault = Some(fault);
        let (ended, runs) = self.arriving(upstream, padding).await;
        let mut state = self.state.lock();
        let seen = state.seen.pop_front().expect("the fault came to pass");
        assert!(state.seen.is_empty() && state.fault.is_none());
        (ended, runs, seen)
    }

    /// Makes calls until one arrives.
    ///
    /// The end of a connection may still be on its way when the connection is taken for the next
    /// call. That call reaches no server and fails as such, and whatever was to happen to it
    /// happens to the one after.
    pub(crate) async fn arriving(&mut self, upstream: &Upstream, padding: usize) -> (Ended, usize) {
        loop {
            let requests = self.state.lock().requests;
            let (ended, runs) = self.call(upstream, padding).await;
            if self.state.lock().requests > requests {
                return (ended, runs);
            }
            let reported = super::delivery(&ended);
            assert!(
                runs == 0 && matches!(reported, Some(Delivery::NotSent | Delivery::Unknown)),
                "a call that reached no server ran {runs} times: {ended:?}"
            );
            self.missed += 1;
        }
    }
}

/// Returns the number of the call in a request, if it could be run.
fn runs(request: &Request) -> Option<u64> {
    let body = request.body();
    let body = std::str::from_utf8(&body[..object_end(body)?]).unwrap();
    let (_, rest) = body.split_once(r#""call":"#)?;
    rest.split_once('}')?.0.parse().ok()
}

async fn serve(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let closed = {
        let mut state = state.lock();
        match state.fault {
            Some(Fault::Closed(how)) => {
                state.fault = None;
                state.requests += 1;
                state.seen.push_back(Seen::default());
                Some(how)
            }
            _ => None,
        }
    };
    if let Some(how) = closed {
        return end(stream, how).await;
    }
    for earlier in 0.. {
        if stream.peek(&mut [0]).await? == 0 {
            return Ok(());
        }
        let fault = {
            let mut state = state.lock();
            state.requests += 1;
            state.fault.take()
        };
        let mut request = Request::default();
        let most = match fault {
            Some(Fault::Read(count, _) | Fault::Stall(count)) => count,
            _ => usize::MAX,
        };
        request.read(&mut stream, most).await?;
        let mut seen = Seen {
            reused: earlier > 0,
            read: request.bytes.len(),
            whole: request.is_whole(),
            ..Seen::default()
        };
        if let Some(number) = runs(&request) {
            *state.lock().runs.entry(number).or_default() += 1;
        }
        let how = match fault {
            None => {
                if request.bytes.starts_with(b"GET ") {
                    state.lock().refused_stream = true;
                }
                stream.write_all(answer(&request).as_bytes()).await?;
                continue;
            }
            Some(Fault::Answer(answer, count, how)) => {
                let mut answer = answer(id_in(&request));
                seen.answered = count >= answer.len();
                answer.truncate(count);
                seen.written = answer;
                how
            }
            Some(Fault::Stall(_)) => {
                state.lock().seen.push_back(seen);
                return drain(&mut stream).await;
            }
            Some(Fault::Read(_, how) | Fault::Closed(how)) => how,
        };
        let written = seen.written.clone();
        state.lock().seen.push_back(seen);
        stream.write_all(written.as_bytes()).await?;
        return end(stream, how).await;
    }
    Ok(())
}

async fn end(mut stream: TcpStream, how: End) -> std::io::Result<()> {
    match how {
        End::Fin => {
            stream.shutdown().await?;
            // closed with bytes unread, it would be a reset
            drain(&mut stream).await
        }
        End::Reset => stream.set_zero_linger(),
    }
}

async fn drain(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

fn id_in(request: &Request) -> u64 {
    let message: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
    message["id"].as_u64().unwrap()
}

/// What a server in good health says.
fn answer(request: &Request) -> String {
    let message: serde_json::Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let outcome = match message["method"].as_str() {
        Some("initialize") => {
            let result = INITIALIZED.replace(r#"{"listChanged":true}"#, "{}");
            format!(r#""result":{result}"#)
        }
        Some("server/discover") => format!(r#""result":{DISCOVERED}"#),
        Some("tools/call") => RESULT.to_owned(),
        Some("notifications/initialized" | "notifications/cancelled") => {
            return "HTTP/1.1 202 x\r\ncontent-length: 0\r\n\r\n".to_owned();
        }
        None if request.bytes.starts_with(b"GET ") => {
            return "HTTP/1.1 405 x\r\ncontent-length: 0\r\n\r\n".to_owned();
        }
        other => panic!("no test asks for {other:?}"),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, message["id"]);
    format!(
        "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
