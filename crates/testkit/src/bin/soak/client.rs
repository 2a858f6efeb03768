//! One client: it makes random calls, and holds each answer to what the servers ran.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::channel::Channel;
use crate::found::{Found, KEYS};
use crate::names::{Named, Names};

/// A client of one gateway.
pub(crate) struct Client {
    pub(crate) channel: Channel,
    pub(crate) names: Arc<Names>,
    pub(crate) found: Arc<Found>,
}

impl Client {
    /// Makes one random call.
    pub(crate) async fn step(&mut self) {
        self.found.calls.fetch_add(1, Ordering::Relaxed);
        let done = match fastrand::u32(..100) {
            0..84 => self.look().await,
            84..91 => self.put(None).await,
            91..93 => {
                let leaves = Duration::from_millis(fastrand::u64(..20));
                self.put(Some(leaves)).await
            }
            93..95 => self.list().await,
            _ if self.channel.with_sessions().is_some() => self.remember().await,
            _ => self.look().await,
        };
        if let Err(error) = done {
            // the gateway may close a connection; what is lost is the call, not the client
            self.found.failed.fetch_add(1, Ordering::Relaxed);
            if let io::ErrorKind::TimedOut | io::ErrorKind::InvalidData = error.kind() {
                self.found
                    .violated(format!("never answered, or not readably: {error}"));
            }
        }
    }

    async fn look(&mut self) -> io::Result<()> {
        let Some(tool) = self.names.any("look") else {
            return self.list().await;
        };
        self.found.looks.fetch_add(1, Ordering::Relaxed);
        let world = self.found.world(tool.server());
        let key = fastrand::u64(..KEYS);
        let moment = world.now(key);
        let answer = self.call(&tool, json!({"key": key}), None).await?;
        let Some(text) = self.text(&answer) else {
            return Ok(());
        };
        let Named { name, identity } = &tool;
        let value = text.strip_prefix(&format!("{identity} {key} "));
        match value.and_then(|value| value.parse().ok()) {
            None => self
                .found
                .violated(format!("{name} of {identity} was answered with {text:?}")),
            Some(value) if !world.held_since(key, moment, value) => self.found.violated(format!(
                "register {key} of {identity} did not hold {value} any more"
            )),
            Some(_) => {}
        }
        Ok(())
    }

    /// Writes a register; the client hangs up after a time, if one is given.
    async fn put(&mut self, leaves: Option<Duration>) -> io::Result<()> {
        let Some(tool) = self.names.any(["put", "swap"][fastrand::usize(..2)]) else {
            return self.list().await;
        };
        let world = self.found.world(tool.server());
        let (key, number) = (fastrand::u64(..KEYS), self.found.number());
        let arguments = json!({"key": key, "number": number});
        let answer = self.call(&tool, arguments, leaves).await?;
        let applied = world.applied(number);
        let Named { name, identity } = &tool;
        match self.text(&answer) {
            Some(text) if text != format!("{identity} {key} {number}") || applied != 1 => {
                self.found.violated(format!(
                    "write {number} through {name} of {identity} ran {applied} times, and {text:?} came back"
                ));
            }
            None if answer["error"]["data"]["delivery"] == "not_sent" && applied > 0 => {
                self.found
                    .violated(format!("write {number} was not sent, and ran: {answer}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives what serves this session a note, and asks for it.
    async fn remember(&mut self) -> io::Result<()> {
        let Some(keep) = self.names.any("keep") else {
            return self.list().await;
        };
        let recall = Named {
            name: keep.name.replace("keep", "recall"),
            identity: keep.identity.replace("keep", "recall"),
        };
        let note = self.found.number().to_string();
        let session = self.session();
        let kept = self.call(&keep, json!({"note": note}), None).await?;
        if self.text(&kept).is_none() {
            return Ok(());
        }
        let recalled = self.call(&recall, json!({}), None).await?;
        // a process that was killed in between, and a session that was lost, know nothing any more
        if let Some(recalled) = self.text(&recalled)
            && recalled != note
            && recalled != "nothing"
            && session == self.session()
        {
            self.found.violated(format!(
                "{note:?} was kept by {}, and {recalled:?} recalled",
                keep.identity
            ));
        }
        Ok(())
    }

    fn session(&mut self) -> Option<String> {
        self.channel.with_sessions()?.session.clone()
    }

    /// Lists the tools: each has the name it always had.
    async fn list(&mut self) -> io::Result<()> {
        let answer = self.channel.request("tools/list", json!({}), None).await?;
        let answer = answer.unwrap_or_default();
        if let Some(tools) = answer["result"]["tools"].as_array() {
            for wrong in self.names.read(tools) {
                self.found.violated(wrong);
            }
        }
        Ok(())
    }

    async fn call(
        &mut self,
        tool: &Named,
        mut arguments: Value,
        leaves: Option<Duration>,
    ) -> io::Result<Value> {
        arguments["for"] = tool.identity.as_str().into();
        let params = json!({"name": tool.name, "arguments": arguments});
        let answer = self.channel.request("tools/call", params, leaves).await?;
        if answer.is_none() {
            self.found.hung_up.fetch_add(1, Ordering::Relaxed);
        }
        Ok(answer.unwrap_or_default())
    }

    /// Returns the text of a result; nothing for an error.
    fn text<'a>(&self, answer: &'a Value) -> Option<&'a str> {
        let text = match answer["result"]["isError"] == true {
            true => None,
            false => answer["result"]["content"][0]["text"].as_str(),
        };
        if text.is_none() && !answer.is_null() {
            self.found.failed.fetch_add(1, Ordering::Relaxed);
        }
        text
    }
}
