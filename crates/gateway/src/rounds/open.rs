//! A call that asks its client while it runs, and stays open between the rounds of that client.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use callward::core::{
    BoxFuture, ClientMethod, ClientPeer, ClientRefusal, LogLevel, Members, ProgressSink, readable,
};
use callward::{Delivery, ErrorKind, ToolError, ToolOutput};
use callward_mcp::server::CallRequest;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// How many rounds one open call may have.
const MAX_ROUNDS: usize = 100;
/// How many questions of one call may wait.
const MAX_QUESTIONS: usize = 16;

type Answer = Result<Bytes, ClientRefusal>;

/// A question of a server, and where the answer goes.
pub(crate) struct Question {
    method: ClientMethod,
    params: Bytes,
    answer: oneshot::Sender<Answer>,
}

type Questions = mpsc::Receiver<Question>;

/// A client that is asked by results, and what it is asked.
pub(crate) type Asks = (Arc<RoundsClient>, Questions);

/// A client that is asked by results. What it is sent beside them goes to its latest request.
pub(crate) struct RoundsClient {
    questions: mpsc::Sender<Question>,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    client: Option<Arc<dyn ClientPeer>>,
    progress: Option<Arc<dyn ProgressSink>>,
}

impl RoundsClient {
    /// Returns a client, and what it is asked.
    pub(super) fn new() -> (Arc<Self>, Questions) {
        let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
        let latest = Mutex::default();
        (Arc::new(Self { questions, latest }), asked)
    }

    /// Takes the latest request of the client.
    pub(super) fn calls(&self, request: &CallRequest) {
        *self.latest.lock() = Latest {
            client: request.client.clone(),
            progress: request.progress.clone(),
        };
    }

    fn client(&self) -> Option<Arc<dyn ClientPeer>> {
        self.latest.lock().client.clone()
    }
}

impl ProgressSink for RoundsClient {
    fn report(&self, params: &[u8]) {
        let progress = self.latest.lock().progress.clone();
        if let Some(progress) = progress {
            progress.report(params);
        }
    }
}

impl ClientPeer for RoundsClient {
    fn ask(&self, method: ClientMethod, params: Bytes) -> BoxFuture<'static, Answer> {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            method,
            params,
            answer,
        };
        let asked = self.questions.try_send(question);
        Box::pin(async move {
            let refused = |message: &str| ClientRefusal {
                code: -32603,
                message: message.to_owned(),
                data: None,
            };
            asked.map_err(|_| refused("the client cannot be asked any more, or not so much"))?;
            let late = |_| refused("the client did not answer in time");
            answered.await.map_err(late)?
        })
    }

    fn notify(&self, method: &'static str, params: &[u8]) {
        if let Some(client) = self.client() {
            client.notify(method, params);
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.client()?.log_level()
    }
}

/// A call that runs.
pub(crate) struct OpenCall {
    call: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    pub(super) client: Arc<RoundsClient>,
    questions: Questions,
    /// Those that have no answer, by the names they have for the client.
    waiting: BTreeMap<String, Question>,
    asked: u64,
    rounds: usize,
    /// Whether the call runs by itself.
    is_apart: bool,
}

impl OpenCall {
    pub(super) fn new(
        call: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
        (client, questions): Asks,
    ) -> Self {
        Self {
            call: Box::pin(call),
            client,
            questions,
            waiting: BTreeMap::new(),
            asked: 0,
            rounds: 0,
            is_apart: false,
        }
    }

    /// Waits for the answer of the call; `None` if it asks its client before.
    pub(super) async fn answered(&mut self) -> Option<Result<ToolOutput, ToolError>> {
        self.waiting
            .retain(|_, question| !question.answer.is_closed());
        if self.waiting.is_empty() {
            tokio::select! {
                biased;
                result = &mut self.call => return Some(result),
                Some(question) = self.questions.recv() => self.take(question),
            }
        }
        while let Ok(question) = self.questions.try_recv() {
            self.take(question);
        }
        None
    }

    fn take(&mut self, question: Question) {
        self.asked += 1;
        // further ones are refused by dropping them
        if self.waiting.len() < MAX_QUESTIONS {
            self.waiting.insert(format!("q{}", self.asked), question);
        }
    }

    /// Writes what the client is asked.
    pub(super) fn asked(&self) -> String {
        let questions = self.waiting.iter().map(|(name, question)| {
            // checked when they came, and passed on as they are
            let params = String::from_utf8_lossy(&question.params);
            let method = question.method;
            format!(r#""{name}":{{"method":"{method}","params":{params}}}"#)
        });
        format!("{{{}}}", questions.collect::<Vec<_>>().join(","))
    }

    /// Returns `true` if the client was asked so often that it may not be asked again.
    pub(super) fn is_over(&self) -> bool {
        self.rounds >= MAX_ROUNDS
    }

    /// Passes the client's answers on. Those that are missing are asked for again.
    pub(super) fn answer(&mut self, answers: &Members<'_>) {
        self.rounds += 1;
        for (name, answer) in answers.iter() {
            if answer.get().starts_with('{')
                && let Some(question) = self.waiting.remove(name)
            {
                let answer = Bytes::copy_from_slice(answer.get().as_bytes());
                let answer = readable::without_lone_surrogates(answer);
                let _ = question.answer.send(Ok(answer));
            }
        }
    }

    /// Lets the call run by itself, until this is dropped.
    pub(super) fn apart(self) -> Self {
        if self.is_apart {
            return self;
        }
        let task = AbortOnDropHandle::new(tokio::spawn(self.call));
        let call = async move {
            task.await.unwrap_or_else(|_| {
                let text = "the call ended without an answer";
                Err(ToolError::new(ErrorKind::Internal, Delivery::Unknown, text))
            })
        };
        Self {
            call: Box::pin(call),
            is_apart: true,
            ..self
        }
    }
}

/// Reads the answers of a client.
///
/// # Errors
///
/// [`ErrorKind::InvalidCall`] if they cannot be read.
pub(super) fn answers(responses: Option<&Bytes>) -> Result<Members<'_>, ToolError> {
    let text = responses.map_or(Ok("{}"), |raw| std::str::from_utf8(raw));
    let text = text
        .ok()
        .filter(|text| readable::check(text.as_bytes()).is_ok());
    let answers = text.and_then(|text| Members::read(text).ok());
    answers.ok_or_else(|| {
        let text = "`inputResponses` must be an object with an object for each question";
        ToolError::new(ErrorKind::InvalidCall, Delivery::NotSent, text).with_code(-32602)
    })
}
