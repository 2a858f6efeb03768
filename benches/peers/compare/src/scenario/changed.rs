//! State that changes without a write through the same server, or that belongs to one client: how
//! many answers are wrong?

use std::collections::BTreeMap;
use std::time::Duration;

use peers_load::{Answer, Client, Endpoint, Era};
use serde_json::json;
use tokio::time::sleep;

use super::memory::shows;
use crate::Outcome;
use crate::figures::Changed;
use crate::scenario::Subject;

/// The ways, in the order of the table.
pub(crate) const WAYS: &[&str] = &[OTHER_SERVER, PERSON, TIME, SESSION_WRITES, SESSION_READS];
const OTHER_SERVER: &str = "through another server";
const PERSON: &str = "by a person, 3 s before";
const TIME: &str = "by time, 3 s apart";
const SESSION_WRITES: &str = "kept per client";
const SESSION_READS: &str = "kept per client, declared as read-only";

/// What of the ways needs clients with sessions, and the tool that is called.
pub(crate) const PER_CLIENT: &[(&str, &str)] = &[
    (SESSION_WRITES, "count_calls"),
    (SESSION_READS, "count_reads"),
];

/// Between a change without a notification and the read.
const LATER: Duration = Duration::from_secs(3);

/// Calls of each client for [`per_client`].
const CALLS: u64 = 3;

impl Changed {
    fn new(way: &str) -> Self {
        Self {
            way: way.to_owned(),
            ..Self::default()
        }
    }

    fn answer(&mut self, answer: &Answer, right: impl FnOnce(&str) -> bool) {
        match answer {
            Answer::Text(text) => {
                self.answers += 1;
                self.wrong += u64::from(!right(text));
            }
            _ => self.errors += 1,
        }
    }
}

/// An item is read, written through the other server, and read at once.
pub(crate) async fn through_other_server(
    reader: &dyn Subject,
    writer: &dyn Subject,
    reads: usize,
) -> Outcome<Changed> {
    let mut found = Changed::new(OTHER_SERVER);
    let (mut reader, mut writer) = (reader.caller().await?, writer.caller().await?);
    for read in 0..reads {
        let key = format!("other-{read}");
        let get = || json!({ "key": key });
        reader.call("get_item", get()).await;
        let set = json!({ "key": key, "value": "after" });
        if writer.call("other_set", set).await.is_ok() {
            let answer = reader.call("get_item", get()).await;
            found.answer(&answer, |text| shows(text, "after"));
        } else {
            found.errors += 1;
        }
    }
    Ok(found)
}

/// Items are read, changed past all servers, and read three seconds later.
pub(crate) async fn by_person(subject: &dyn Subject, reads: usize) -> Outcome<Changed> {
    let mut found = Changed::new(PERSON);
    let mut caller = subject.caller().await?;
    let keys: Vec<_> = (0..reads).map(|read| format!("person-{read}")).collect();
    for key in &keys {
        caller.call("get_item", json!({ "key": key })).await;
    }
    let after = keys.iter().map(|key| (key.clone(), "after".to_owned()));
    subject.change(after.collect::<BTreeMap<_, _>>()).await?;
    sleep(LATER).await;
    for key in &keys {
        let answer = caller.call("get_item", json!({ "key": key })).await;
        found.answer(&answer, |text| shows(text, "after"));
    }
    Ok(found)
}

/// A number that grows each second is read, and read again three seconds later.
pub(crate) async fn by_time(subject: &dyn Subject, reads: usize) -> Outcome<Changed> {
    let mut found = Changed::new(TIME);
    let mut caller = subject.caller().await?;
    let keys: Vec<_> = (0..reads).map(|read| format!("time-{read}")).collect();
    for key in &keys {
        caller.call("level_get", json!({ "key": key })).await;
    }
    sleep(LATER).await;
    for key in &keys {
        let level = subject.counts().await?.level;
        let answer = caller.call("level_get", json!({ "key": key })).await;
        found.answer(&answer, |text| number(text) >= Some(level));
    }
    Ok(found)
}

/// Pairs of clients take turns with equal calls of a tool that counts them in its session.
pub(crate) async fn per_client(
    peer: &Endpoint,
    (way, tool): (&str, &str),
    pairs: usize,
) -> Outcome<Changed> {
    let mut found = Changed::new(way);
    for _ in 0..pairs {
        let mut clients = [
            Client::settled(peer, Era::Legacy).await?,
            Client::settled(peer, Era::Legacy).await?,
        ];
        let name = clients[0].name_of(tool).await?;
        for call in 1..=CALLS {
            for client in &mut clients {
                let answer = client.call(&name, &json!({ "key": "calls" })).await;
                found.answer(&answer, |text| number(text) == Some(call));
            }
        }
        for client in clients {
            client.close().await;
        }
    }
    Ok(found)
}

/// The ways that a peer without clients cannot be asked about.
pub(crate) fn inapplicable() -> impl Iterator<Item = Changed> {
    PER_CLIENT.iter().map(|(way, _)| Changed::new(way))
}

/// The number in a text, whatever a peer has put around it.
fn number(text: &str) -> Option<u64> {
    let from = text.find(|character: char| character.is_ascii_digit())?;
    let digits = text[from..].split(|character: char| !character.is_ascii_digit());
    digits.take(1).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Layers;

    #[test]
    fn a_number_is_seen_through_what_a_peer_puts_around_it() {
        for text in ["12", "\"12\"", "{\"result\":\"12\"}"] {
            assert_eq!(number(text), Some(12), "{text}");
        }
        assert_eq!(number("nothing"), None);
    }

    #[test]
    fn an_error_is_not_a_wrong_answer() {
        let mut found = Changed::new(PERSON);
        found.answer(&Answer::Text("before".into()), |text| text == "after");
        found.answer(&Answer::Text("after".into()), |text| text == "after");
        found.answer(&Answer::Failed("after".into()), |text| text == "after");
        assert_eq!((found.answers, found.wrong, found.errors), (2, 1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cache_that_nothing_invalidates_is_wrong_each_time() {
        let layers = Layers::new().unwrap();
        let other = through_other_server(&layers, &layers, 4).await.unwrap();
        let person = by_person(&layers, 4).await.unwrap();
        let time = by_time(&layers, 4).await.unwrap();
        for found in [other, person, time] {
            assert_eq!(
                (found.answers, found.wrong, found.errors),
                (4, 4, 0),
                "{found:?}"
            );
        }
    }
}
