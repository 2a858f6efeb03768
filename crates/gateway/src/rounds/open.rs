//! A call that asks its client while it runs, and stays open between the rounds of that client.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use callward::core::{
    BoxFuture, ClientMethod, ClientPeer, ClientRefusal, LogLevel, Members, readable,
};
use callward::{Delivery, ErrorKind, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// How many questions of one call may wait.
const MAX_QUESTIONS: usize = 16;

type Answer = Result<Bytes, ClientRefusal>;

/// A question of a server, and where the answer goes.
pub(crate) struct Question {
    method: ClientMethod,
    params: Bytes,
    answer: oneshot::Sender<Answer>,
}

pub(crate) type Questions = mpsc::Receiver<Question>;

/// A client that is asked by results.
pub(super) struct Asker {
    questions: mpsc::Sender<Question>,
    /// For notifications.
    client: Option<Arc<dyn ClientPeer>>,
}

/// Makes a client that is asked by results, and what is asked.
pub(super) fn questions(client: Option<Arc<dyn ClientPeer>>) -> (Asker, Questions) {
    let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
    (Asker { questions, client }, asked)
}

impl ClientPeer for Asker {
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
        if let Some(client) = &self.client {
            client.notify(method, params);
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.client.as_ref()?.log_level()
    }
}

/// A call that runs.
pub(crate) struct OpenCall {
    call: BoxFuture<'static, Result<ToolOutput, ToolError>>,
    questions: Questions,
    /// Those that have no answer, by the names they have for the client.
    waiting: BTreeMap<String, Question>,
    asked: u64,
    /// Whether the call runs by itself.
    is_apart: bool,
}

impl OpenCall {
    pub(super) fn new(
        call: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
        questions: Questions,
    ) -> Self {
        Self {
            call: Box::pin(call),
            questions,
            waiting: BTreeMap::new(),
            asked: 0,
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
            let params: Value = serde_json::from_slice(&question.params).unwrap_or_default();
            let question = json!({"method": question.method.as_str(), "params": params});
            (name.clone(), question)
        });
        super::written(questions)
    }

    /// Passes the client's answers on. Those that are missing are asked for again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidCall`] if they cannot be read.
    pub(super) fn answer(&mut self, responses: Option<&Bytes>) -> Result<(), ToolError> {
        let text = responses.map_or(Ok("{}"), |raw| std::str::from_utf8(raw));
        let answers = text
            .ok()
            .filter(|text| readable::check(text.as_bytes()).is_ok());
        let answers = answers.and_then(|text| Members::read(text).ok());
        let answers = answers.ok_or_else(|| {
            let text = "`inputResponses` must be an object with an object for each question";
            ToolError::new(ErrorKind::InvalidCall, Delivery::Unknown, text).with_code(-32602)
        })?;
        for (name, answer) in answers.iter() {
            if answer.get().starts_with('{')
                && let Some(question) = self.waiting.remove(name)
            {
                let answer = Bytes::copy_from_slice(answer.get().as_bytes());
                let answer = readable::without_lone_surrogates(answer);
                let _ = question.answer.send(Ok(answer));
            }
        }
        Ok(())
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
