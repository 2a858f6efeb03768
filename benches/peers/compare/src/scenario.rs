//! What each peer is taken through. Callers are MCP clients, or call layers in this process.

pub(crate) mod changed;
pub(crate) mod hints;
pub(crate) mod lost;
pub(crate) mod memory;
pub(crate) mod neighbours;
pub(crate) mod recovery;
pub(crate) mod speed;
pub(crate) mod stampede;

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use peers_load::{Answer, Client, Endpoint, Era};
use peers_upstream::{Counts, Fault};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Outcome;
use crate::upstream::Upstream;

pub(crate) type Pinned<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A client that calls tools, one after the other.
pub(crate) trait Caller: Send {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Pinned<'a, Answer>;
}

/// What is measured, and the world behind it.
pub(crate) trait Subject: Send + Sync {
    fn caller(&self) -> Pinned<'_, Outcome<Box<dyn Caller>>>;
    fn reset(&self) -> Pinned<'_, Outcome<()>>;
    fn lose<'a>(
        &'a self,
        tools: &'a [&'a str],
        fault: Fault,
        share: f64,
    ) -> Pinned<'a, Outcome<()>>;
    /// Changes items without any tool.
    fn change(&self, items: BTreeMap<String, String>) -> Pinned<'_, Outcome<()>>;
    fn counts(&self) -> Pinned<'_, Outcome<Counts>>;
}

/// A peer over HTTP.
pub(crate) struct Remote<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) upstream: &'a Upstream,
}

struct RemoteCaller {
    client: Client,
    names: Vec<(String, String)>,
}

impl Subject for Remote<'_> {
    fn caller(&self) -> Pinned<'_, Outcome<Box<dyn Caller>>> {
        Box::pin(async {
            let client = Client::settled(&self.endpoint, Era::Legacy).await?;
            Ok(Box::new(RemoteCaller {
                client,
                names: Vec::new(),
            }) as Box<dyn Caller>)
        })
    }

    fn reset(&self) -> Pinned<'_, Outcome<()>> {
        Box::pin(self.upstream.reset())
    }

    fn lose<'a>(
        &'a self,
        tools: &'a [&'a str],
        fault: Fault,
        share: f64,
    ) -> Pinned<'a, Outcome<()>> {
        Box::pin(self.upstream.lose(tools, fault, share))
    }

    fn change(&self, items: BTreeMap<String, String>) -> Pinned<'_, Outcome<()>> {
        Box::pin(self.upstream.change(items))
    }

    fn counts(&self) -> Pinned<'_, Outcome<Counts>> {
        Box::pin(self.upstream.counts())
    }
}

impl Caller for RemoteCaller {
    fn call<'a>(&'a mut self, tool: &'a str, arguments: Value) -> Pinned<'a, Answer> {
        Box::pin(async move {
            let known = self.names.iter().find(|(known, _)| known == tool);
            let name = match known {
                Some((_, name)) => name.clone(),
                None => match self.client.name_of(tool).await {
                    Ok(name) => {
                        self.names.push((tool.to_owned(), name.clone()));
                        name
                    }
                    Err(error) => return Answer::Lost(error.0),
                },
            };
            self.client.call(&name, &arguments).await
        })
    }
}

/// A call to be made: the tool and its arguments.
pub(crate) type Call = (&'static str, Value);

/// Makes all calls, with this many callers at once. The answers stand in the order of the calls.
pub(crate) async fn all(
    subject: &dyn Subject,
    callers: usize,
    calls: Vec<Call>,
) -> Outcome<Vec<Reply>> {
    let count = calls.len();
    let queue: VecDeque<(usize, Call)> = calls.into_iter().enumerate().collect();
    let queue = Arc::new(Mutex::new(queue));
    let mut own = Vec::with_capacity(callers);
    for _ in 0..callers {
        own.push(subject.caller().await?);
    }
    // dropped with this future, and the calls with it
    let mut tasks = JoinSet::new();
    for mut caller in own {
        let queue = Arc::clone(&queue);
        tasks.spawn(async move {
            let mut answers = Vec::new();
            loop {
                let next = queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                let Some((place, (tool, arguments))) = next else {
                    return answers;
                };
                let begun = Instant::now();
                let answer = caller.call(tool, arguments).await;
                answers.push((
                    place,
                    Reply {
                        answer,
                        seconds: begun.elapsed().as_secs_f64(),
                    },
                ));
            }
        });
    }
    let mut found: Vec<Option<Reply>> = (0..count).map(|_| None).collect();
    while let Some(answers) = tasks.join_next().await {
        for (place, reply) in answers? {
            if let Some(slot) = found.get_mut(place) {
                *slot = Some(reply);
            }
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// An answer, and how long it took.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) seconds: f64,
}

/// How many calls did not get the tool's answer.
pub(crate) fn failed(replies: &[Reply]) -> u64 {
    replies.iter().filter(|reply| !reply.answer.is_ok()).count() as u64
}

/// How long the longest call took.
pub(crate) fn slowest(replies: &[Reply]) -> f64 {
    replies
        .iter()
        .map(|reply| reply.seconds)
        .fold(0.0, f64::max)
}
