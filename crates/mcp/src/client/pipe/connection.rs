//! One connection: a task that writes, a task that reads, and the requests between them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use callward_core::redact::Known;
use callward_core::{ClientMethod, Outbound, Transport};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, Line};
use super::waiters::{Answer, Waiters, Written};
use crate::client::answer::RequestError;
use crate::client::ask::{self, Ask, Style};
use crate::client::asked::{self, Asker, Recipients};
use crate::client::carried::Carried;
use crate::client::peer::reply;
use crate::client::shared::Shared;
use crate::wire::{
    InvalidMessage, LineError, LineReader, Message, RequestId, RpcError, Skipped, code, flatten,
    write,
};

/// The most lines in one write.
const BATCH_LINES: usize = 64;

/// How many bytes may wait for a server that does not read. A call beyond that is not sent.
const MAX_WAITING: usize = 64 * 1024 * 1024;

/// How many bytes of messages beside calls may wait: a server decides how many replies there are.
/// Further ones are dropped.
const MAX_WAITING_BESIDE: usize = 1024 * 1024;

/// One connection. Ends when `closed` fires; then nothing new is taken.
pub(super) struct Connection {
    waiters: Mutex<Waiters>,
    outgoing: mpsc::UnboundedSender<Line>,
    /// How many bytes are in `outgoing`.
    waiting: AtomicUsize,
    next_id: AtomicU64,
    /// Whether a line was read that is not a message.
    saw_other_line: AtomicBool,
    /// Fires when the connection has ended or has to.
    pub(super) closed: CancellationToken,
    /// Fires when nothing more is written and the written requests are known.
    written: CancellationToken,
    reason: Mutex<Option<String>>,
    /// What is left out of the server's errors.
    secrets: Known,
}

impl Connection {
    /// Starts the two tasks. They end with the connection.
    pub(super) fn open<R, W>(
        shared: &Arc<Shared>,
        (reader, writer): (R, W),
        secrets: Known,
    ) -> Arc<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outgoing, lines) = mpsc::unbounded_channel();
        let connection = Arc::new(Self {
            waiters: Mutex::default(),
            outgoing,
            waiting: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            saw_other_line: AtomicBool::new(false),
            closed: CancellationToken::new(),
            written: CancellationToken::new(),
            reason: Mutex::new(None),
            secrets,
        });
        tokio::spawn({
            let connection = connection.clone();
            async move {
                // fires even if the writer panics, so that those who wait are notified
                let _written = connection.written.clone().drop_guard();
                let mut batch = Batch::default();
                // dropping the writer closes the server's input: its sign to end
                let writing = connection.write_lines(&mut batch, writer, lines);
                connection.closed.run_until_cancelled(writing).await;
                let mut waiters = connection.waiters.lock();
                for (id, written) in batch.unfinished() {
                    waiters.mark(id, written);
                }
            }
        });
        tokio::spawn({
            let connection = connection.clone();
            let lines = LineReader::new(reader, shared.options.max_message)
                .with_long(shared.long_messages.clone());
            let shared = shared.clone();
            async move {
                let reading = connection.read_lines(&shared, lines);
                connection.closed.run_until_cancelled(reading).await;
            }
        });
        connection
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request.
    pub(super) async fn request(&self, ask: &Ask<'_>, style: &Style) -> Answer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut outbound = Outbound::new(Transport::Pipe, id);
        outbound.protocol_version = style.version;
        let bytes = ask.to_message(id, style, &Carried::new(ask, &outbound));
        if !self.has_space(bytes.len(), MAX_WAITING) {
            return Err(RequestError::not_sent(format!(
                "the server does not read what it is sent: over {MAX_WAITING} bytes wait for it"
            )));
        }
        let receiver = self.waiters.lock().add(id, Recipients::of(ask.call));
        let Some(receiver) = receiver else {
            return Err(RequestError::not_sent("the connection is closing"));
        };
        let _in_flight = InFlight {
            connection: self,
            id,
            cancellable: ask.is_cancellable(),
        };
        self.send(Some(id), bytes);
        // the sender is dropped without a message only if the whole connection is dropped unclosed
        let given_up = |_| Err(RequestError::lost("the connection was given up"));
        receiver.await.unwrap_or_else(given_up)
    }

    /// Ends the connection. The first reason stays; those who wait are notified by [`fail_all`].
    ///
    /// [`fail_all`]: Self::fail_all
    pub(super) fn close(&self, reason: impl Into<String>) {
        self.waiters.lock().closing = true;
        self.reason.lock().get_or_insert_with(|| reason.into());
        self.closed.cancel();
    }

    /// Returns why the connection ended.
    pub(super) fn reason(&self) -> String {
        self.reason.lock().clone().unwrap_or_default()
    }

    /// Fails all requests in flight, for this reason. Only for a connection that was closed.
    ///
    /// Waits for the writer first: it alone knows how far it got.
    pub(super) async fn fail_all(&self, reason: &str) {
        self.written.cancelled().await;
        self.waiters.lock().fail_all(reason);
    }

    /// Returns `true` if this much may wait too. A single message always may.
    fn has_space(&self, more: usize, most: usize) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        waiting == 0 || waiting.saturating_add(more) <= most
    }

    /// Sends a message that is not a request, unless too many bytes wait.
    pub(super) fn say(&self, bytes: Vec<u8>) {
        if self.has_space(bytes.len(), MAX_WAITING_BESIDE) {
            self.send(None, bytes);
        }
    }

    fn send(&self, request: Option<u64>, mut bytes: Vec<u8>) {
        flatten(&mut bytes);
        bytes.push(b'\n');
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        // fails only if the writer has ended, and then all that wait are about to fail
        let _ = self.outgoing.send(Line { request, bytes });
    }

    async fn write_lines<W: AsyncWrite + Unpin>(
        &self,
        batch: &mut Batch,
        mut writer: W,
        mut lines: mpsc::UnboundedReceiver<Line>,
    ) {
        let mut waiting = Vec::with_capacity(BATCH_LINES);
        while lines.recv_many(&mut waiting, BATCH_LINES).await > 0 {
            let mut due = waiting.drain(..).peekable();
            while due.peek().is_some() {
                *batch = Batch::default();
                {
                    let mut waiters = self.waiters.lock();
                    for line in due.by_ref() {
                        self.waiting.fetch_sub(line.bytes.len(), Ordering::Relaxed);
                        // marked before the write: an answer may overtake the writer's next step
                        let is_due = |id| waiters.mark(id, Written::Whole);
                        if line.request.is_none_or(is_due) {
                            batch.push(line);
                        }
                        if batch.is_full() {
                            break;
                        }
                    }
                }
                if let Err(error) = batch.write_to(&mut writer).await {
                    self.close(format!("writing to the server failed: {error}"));
                    return;
                }
            }
        }
    }

    async fn read_lines<R: AsyncRead + Unpin>(
        self: &Arc<Self>,
        shared: &Shared,
        mut lines: LineReader<R>,
    ) {
        let reason = loop {
            // a server that always has more must not occupy a thread
            tokio::task::coop::consume_budget().await;
            match lines.next().await {
                Ok(Some(line)) => {
                    let long = &shared.long_messages;
                    let message = long.read(line.len(), move || Message::parse(&line)).await;
                    self.receive(shared, message);
                }
                Ok(None) => break "the server closed its output".to_owned(),
                Err(LineError::TooLong { limit, skipped }) => {
                    self.skip(shared, limit, skipped);
                }
                Err(error @ LineError::Io(_)) => break error.to_string(),
            }
        };
        self.close(reason);
    }

    fn receive(self: &Arc<Self>, shared: &Shared, message: Result<Message, InvalidMessage>) {
        match message {
            Ok(Message::Response {
                id: Some(id),
                outcome,
            }) => self.answer(shared, &id, outcome.map_err(RequestError::Refused)),
            Ok(Message::Response { id: None, outcome }) => {
                if let Err(error) = outcome {
                    let error = error.to_string();
                    let error = self.secrets.hide(&error);
                    tracing::warn!(server = %shared.id, %error, "an error about no request");
                }
            }
            Ok(Message::Request { id, method, params }) => self.asked(shared, id, &method, params),
            Ok(Message::Notification { method, params }) => {
                self.notified(shared, &method, params.as_ref());
            }
            Err(error) => match error.id() {
                Some(id) => self.answer(shared, id, Err(RequestError::unreadable(&error))),
                None => self.skip_other_line(shared, &error),
            },
        }
    }

    /// Logs a line that is not a message, or an answer under an id that no request ever has: some
    /// servers print to the wrong stream. The first one of a connection is a warning, as it may
    /// have been the answer to a call.
    fn skip_other_line(&self, shared: &Shared, error: &dyn fmt::Display) {
        let server = &shared.id;
        let error = error.to_string();
        let error = self.secrets.hide(&error);
        match self.saw_other_line.swap(true, Ordering::Relaxed) {
            false => tracing::warn!(
                %server,
                %error,
                "the server wrote a line that is not a message; it is skipped, and more are logged as debug"
            ),
            true => tracing::debug!(%server, %error, "a line that is not a message"),
        }
    }

    /// Fails the call whose answer was too long. A call whose answer cannot be distinguished from
    /// others has its timeout.
    fn skip(&self, shared: &Shared, limit: usize, skipped: Skipped) {
        let Skipped { id, has_method, .. } = skipped;
        tracing::warn!(
            server = %shared.id,
            limit,
            id = id.as_ref().map(tracing::field::display),
            "a message is longer than `max_message` and was skipped"
        );
        match id {
            Some(id) if has_method => {
                let text = format!("the request is longer than {limit} bytes");
                let error = RpcError::new(code::INVALID_REQUEST, text);
                self.say(write::error(Some(&id), &error));
            }
            Some(id) => self.answer(shared, &id, Err(RequestError::too_large(limit))),
            None => {}
        }
    }

    fn answer(&self, shared: &Shared, id: &RequestId, answer: Answer) {
        let answer = answer.map_err(|error| error.without(&self.secrets));
        let found = id
            .as_u64()
            .is_some_and(|id| self.waiters.lock().answer(id, answer));
        if id.as_u64().is_none() {
            // the server chose it: it may be of any length
            let id: String = id.to_raw().chars().take(64).collect();
            let error = format_args!("an answer with the id {id}, which is not a whole number");
            self.skip_other_line(shared, &error);
        } else if !found {
            tracing::debug!(server = %shared.id, %id, "an answer without a request");
        }
    }

    /// Answers a request of the server.
    fn asked(
        self: &Arc<Self>,
        shared: &Shared,
        id: RequestId,
        method: &str,
        params: Option<Bytes>,
    ) {
        let Some(asked) = ClientMethod::by_name(method) else {
            return self.say(reply(&id, method));
        };
        let connection = self.clone();
        let reply = async move |message| connection.say(message);
        let client = shared.asks(self.client(shared), asked, params.as_ref());
        let asked = (id, asked, params);
        if let Some(refusal) = shared.requests.answer(client, asked, &self.closed, reply) {
            self.say(refusal);
        }
    }

    fn client(&self, shared: &Shared) -> Result<Asker, &'static str> {
        shared.client(|| self.waiters.lock().meant())
    }

    fn notified(&self, shared: &Shared, method: &str, params: Option<&Bytes>) {
        match method {
            "notifications/cancelled" => shared.requests.cancel(params),
            passed_on if asked::is_passed_on(passed_on) => {
                if let Ok(client) = self.client(shared) {
                    client.notify(passed_on, params);
                }
            }
            "notifications/progress" => {
                let Some(params) = params else { return };
                let sink = ask::progress_id(params).and_then(|id| self.waiters.lock().progress(id));
                if let Some(sink) = sink {
                    sink.report(params); // outside of the lock: it is not our code
                }
            }
            _ if shared.takes(method, params) => {}
            _ => tracing::trace!(server = %shared.id, method, "a notification of no concern"),
        }
    }
}

/// Takes a request out when no caller waits for it any more, and tells the server if it may know of
/// it.
struct InFlight<'a> {
    connection: &'a Connection,
    id: u64,
    cancellable: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let is_known = self.connection.waiters.lock().forget(self.id);
        if is_known && self.cancellable {
            self.connection.say(ask::cancelled(self.id));
        }
    }
}
