//! The open questions of a process, and how they end.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use callward_core::{BoxFuture, Principal, ToolCall};
use futures_util::future::{Either, select};
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::{broadcast, oneshot};
use tokio::time::timeout;

use super::{Answer, Event, Outcome, Person, Question, QuestionError, QuestionKind};
use crate::clock::now_ms;
use crate::future::Waits;
use crate::{Bounds, Limit, RequestId};

/// How often a person may answer one question.
const TRIES: usize = 3;
/// How many events wait for a slow listener.
const MAX_EVENTS: usize = 1024;

type Ended = Result<Answer, QuestionError>;
type Handler = Arc<dyn Fn(Question) -> BoxFuture<'static, Ended> + Send + Sync>;

/// A question that is open. The answer is never here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pending {
    /// The question.
    pub id: RequestId,
    /// What it asks for.
    pub kind: QuestionKind,
    /// Who is asked.
    #[serde(serialize_with = "crate::request::principal::serialize")]
    pub principal: Principal,
    /// What the person reads.
    pub message: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Asks people questions. Clones share the open ones.
///
/// ```
/// use std::sync::Arc;
///
/// use bytes::Bytes;
/// use callward_approval::questions::Questions;
/// use callward_core::{BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer};
/// use callward_core::{ClientRefusal, ToolCall};
///
/// /// A client whose person says yes.
/// struct Agrees;
///
/// impl ClientPeer for Agrees {
///     fn ask(
///         &self,
///         _: ClientMethod,
///         _: Bytes,
///     ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
///         let answer = r#"{"action": "accept", "content": {"answer": true}}"#;
///         Box::pin(async move { Ok(Bytes::from(answer)) })
///     }
/// }
///
/// # async fn example(mut call: ToolCall) -> Result<(), Box<dyn std::error::Error>> {
/// let context = call.context_mut();
/// context.client = Some(CallClient::new(Arc::new(Agrees), false));
/// context.capabilities = ClientCapabilities::parse(br#"{"elicitation": {}}"#);
///
/// let questions = Questions::default();
/// assert!(questions.to(&call).confirm("Delete order 7?").await?);
/// # Ok(())
/// # }
/// # let tool = callward_core::Tool::mutating("delete_order").unwrap();
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
/// # runtime.block_on(example(ToolCall::new(tool, "{}"))).unwrap();
/// ```
#[derive(Clone)]
pub struct Questions {
    bounds: Bounds,
    handler: Option<Handler>,
    pub(super) page: Option<Arc<str>>,
    state: Arc<Mutex<State>>,
    events: broadcast::Sender<Event>,
}

#[derive(Default)]
struct State {
    open: HashMap<RequestId, Open>,
    counts: BTreeMap<(QuestionKind, Outcome), u64>,
}

impl State {
    /// Finds the open question whose page has this token.
    fn at(&mut self, token: &str) -> Option<&mut Open> {
        let token = digest(token);
        let mut all = self.open.values_mut();
        all.find(|open| open.token == token && open.end.is_some())
    }
}

struct Open {
    pending: Arc<Pending>,
    question: Question,
    /// The digest of what the page's URL ends with: who knows that may answer.
    token: [u8; 32],
    /// How many answers of the page did not fit.
    misses: usize,
    /// `None` once it is ended.
    end: Option<oneshot::Sender<Ended>>,
}

/// Up to 4 questions of one principal and 256 in all, without a page.
impl Default for Questions {
    fn default() -> Self {
        let (of_principal, in_all) = (4, 256);
        Self {
            bounds: Bounds {
                of_principal,
                in_all,
            },
            handler: None,
            page: None,
            state: Arc::default(),
            events: broadcast::Sender::new(MAX_EVENTS),
        }
    }
}

impl Questions {
    /// Sets how many questions may be open. More are refused.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Lets a function of this process ask in the client's place. Its answers are checked as those
    /// of clients are. A call without a client is not known to have asked: if its tool reads, the
    /// result may be served from the cache.
    #[must_use]
    pub fn with_handler<F, A>(mut self, handler: F) -> Self
    where
        F: Fn(Question) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Answer, QuestionError>> + Send + 'static,
    {
        self.handler = Some(Arc::new(move |question| Box::pin(handler(question))));
        self
    }

    /// Sets the URL of the page that asks for secrets and files. A token of 128 random bits is
    /// added at its end; the page passes it and the answer to [`submit`](Self::submit). Who has the
    /// URL can answer, once and while the question is open, so a page that other machines reach has
    /// to check the principal too.
    #[must_use]
    pub fn with_page(mut self, url: impl Into<Arc<str>>) -> Self {
        self.page = Some(url.into());
        self
    }

    /// Returns the person at the client of a call, to ask.
    #[must_use]
    pub const fn to<'a>(&'a self, call: &'a ToolCall) -> Person<'a> {
        Person {
            questions: self,
            call,
        }
    }

    /// Returns the open question that the page with this token asks.
    #[must_use]
    pub fn at(&self, token: &str) -> Option<Arc<Pending>> {
        let mut state = self.state.lock();
        Some(state.at(token)?.pending.clone())
    }

    /// Answers a question for its page. An answer that does not fit may be replaced, twice at most;
    /// one of another kind never fits.
    ///
    /// # Errors
    ///
    /// [`QuestionError::Unfit`] with the reason for the person, or [`QuestionError::NotFound`].
    pub fn submit(&self, token: &str, answer: Answer) -> Result<(), QuestionError> {
        let mut state = self.state.lock();
        let open = state.at(token).ok_or(QuestionError::NotFound)?;
        let fits = open.question.check(&answer);
        open.misses += usize::from(fits.is_err());
        if (fits.is_ok() || open.misses == TRIES)
            && let Some(end) = open.end.take()
        {
            let ended = fits.clone().map(|()| answer);
            let sent = end.send(ended.map_err(QuestionError::Unfit));
            // it has just ended otherwise
            sent.map_err(|_| QuestionError::NotFound)?;
        }
        fits.map_err(QuestionError::Unfit)
    }

    /// Cancels an open question. Returns `false` if there is none.
    #[must_use]
    pub fn cancel(&self, id: &RequestId) -> bool {
        let mut state = self.state.lock();
        let end = state.open.get_mut(id).and_then(|open| open.end.take());
        end.is_some_and(|end| end.send(Err(QuestionError::Cancelled)).is_ok())
    }

    /// Returns the open questions, the oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<Arc<Pending>> {
        let state = self.state.lock();
        let mut all: Vec<_> = state.open.values().map(|it| it.pending.clone()).collect();
        all.sort_unstable_by(|a, b| (a.since_ms, &a.id).cmp(&(b.since_ms, &b.id)));
        all
    }

    /// Returns what is asked and what ends from now on. A listener that falls 1,024 events behind
    /// loses the oldest.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Returns how many questions of each kind ended, by outcome.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<(QuestionKind, Outcome), u64> {
        self.state.lock().counts.clone()
    }

    fn send(&self, question: &Arc<Pending>, outcome: Option<Outcome>) {
        let (question, id, kind) = (question.clone(), &question.id, question.kind);
        tracing::info!(%id, %kind, outcome = outcome.map(Outcome::as_str), "question");
        // fails if there is no listener
        let _ = self.events.send(Event { question, outcome });
    }

    fn open(&self, open: Open) -> Result<Guard, QuestionError> {
        let mut state = self.state.lock();
        let principal = &open.pending.principal;
        let others = state.open.values();
        let own = others.filter(|other| other.pending.principal == *principal);
        if own.count() >= self.bounds.of_principal {
            return Err(QuestionError::TooMany(Limit::OfPrincipal));
        }
        if state.open.len() >= self.bounds.in_all {
            return Err(QuestionError::TooMany(Limit::InAll));
        }
        let question = open.pending.clone();
        state.open.insert(question.id.clone(), open);
        drop(state);
        self.send(&question, None);
        Ok(Guard {
            questions: self.clone(),
            question,
            outcome: Outcome::Cancelled,
        })
    }
}

impl Person<'_> {
    /// Asks, and waits for an answer that fits.
    ///
    /// # Errors
    ///
    /// [`QuestionError`] if there is none.
    pub async fn ask(self, question: Question) -> Result<Answer, QuestionError> {
        question.validate().map_err(QuestionError::Invalid)?;
        let token = RequestId::random()?;
        let page = self.questions.page.as_ref();
        let url = page.map(|page| format!("{page}{token}"));
        let pending = Arc::new(Pending {
            id: RequestId::random()?,
            kind: question.kind(),
            principal: self.call.caller().principal.clone(),
            message: question.message.clone(),
            since_ms: now_ms(),
        });
        let (end, ended) = oneshot::channel();
        let mut guard = self.questions.open(Open {
            pending: pending.clone(),
            question: question.clone(),
            token: digest(token.as_str()),
            misses: 0,
            end: Some(end),
        })?;
        let _waits = self.call.progress().cloned().map(Waits::begin);
        let asked = pin!(self.ask_often(&question, &pending.id, url.as_deref()));
        let result = match timeout(question.timeout, select(ended, asked)).await {
            Ok(Either::Left((ended, _))) => ended.unwrap_or(Err(QuestionError::Cancelled)),
            Ok(Either::Right((answer, _))) => answer,
            Err(_) => {
                guard.outcome = Outcome::TimedOut;
                let late = question.on_timeout.clone().map(Answer::Value);
                return late.ok_or(QuestionError::TimedOut(question.timeout));
            }
        };
        guard.outcome = Outcome::of(&result);
        result
    }

    async fn ask_often(self, question: &Question, id: &RequestId, url: Option<&str>) -> Ended {
        let mut reason = String::new();
        for attempt in 0..TRIES {
            let again = match attempt {
                0 => question.clone(),
                _ => question.again(&reason),
            };
            let answer = match &self.questions.handler {
                Some(handler) => {
                    if let Some(client) = &self.call.client {
                        client.note_asked();
                    }
                    handler(again).await?
                }
                None => self.ask_client(&again, id, url).await?,
            };
            match question.check(&answer) {
                Ok(()) => return Ok(answer),
                Err(why) => reason = why,
            }
        }
        Err(QuestionError::Unfit(reason))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions")
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}

/// An open question, which ends when this is dropped: exactly once.
struct Guard {
    questions: Questions,
    question: Arc<Pending>,
    outcome: Outcome,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.questions.state.lock();
        let ended = state.open.remove(&self.question.id);
        let count = state.counts.entry((self.question.kind, self.outcome));
        *count.or_default() += 1;
        drop(state);
        drop(ended);
        self.questions.send(&self.question, Some(self.outcome));
    }
}
