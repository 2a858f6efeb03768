//! A pipe that breaks at every byte.

use callward_core::{Delivery, ErrorKind};
use callward_mcp::client::{EraChoice, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Ended, assert_told_the_truth, delivery, object_end};
use crate::script::{DISCOVERED, LONG, Peer, Script, call, calling, scripted};

const RESULT: &str = r#""result":{"content":[{"type":"text","text":"{\"}"}]}"#;
const ERROR: &str = r#""error":{"code":-32603,"message":"no } \" way"}"#;

struct Pair {
    era: EraChoice,
    upstream: Upstream,
    script: Script,
    peer: Peer,
}

async fn connected(era: EraChoice, capacity: usize) -> Pair {
    let (upstream, mut script) = scripted(capacity, |options| options.era = era);
    let peer = greeted(era, &mut script).await;
    upstream.ready(LONG).await.unwrap();
    Pair {
        era,
        upstream,
        script,
        peer,
    }
}

async fn greeted(era: EraChoice, script: &mut Script) -> Peer {
    let mut peer = script.accept().await;
    if era == EraChoice::Legacy {
        peer.initialize().await;
    } else {
        let probe = peer.asked("server/discover").await;
        peer.reply(&probe, DISCOVERED).await;
    }
    peer
}

fn answer(request: &str, outcome: &str) -> String {
    let request: serde_json::Value = serde_json::from_str(request).unwrap();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},{outcome}}}\n",
        request["id"]
    )
}

/// Lets every task go as far as it gets.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Reads `count` bytes of a call, then is gone. Returns what it read and what the caller gets.
async fn dies_reading(pair: &mut Pair, count: usize) -> (Vec<u8>, Ended) {
    let running = calling(&pair.upstream, call("x", r#"{"a":"}\""}"#));
    let mut read = Vec::new();
    while read.len() < count && read.last() != Some(&b'\n') {
        read.push(pair.peer.0.read_u8().await.unwrap());
    }
    settle().await; // the writer fills the space that was made
    pair.peer.0 = tokio::io::duplex(1).0;
    (read, running.await.unwrap())
}

/// Makes a call on the next connection. The first call it sees has to be this one.
async fn works_again(pair: &mut Pair) {
    pair.peer = greeted(pair.era, &mut pair.script).await;
    settle().await;
    let running = calling(&pair.upstream, call("after", "{}"));
    let asked = pair.peer.next_line().await.unwrap();
    assert!(asked.contains(r#""name":"after""#), "{asked}");
    let answer = answer(&asked, RESULT);
    pair.peer.0.write_all(answer.as_bytes()).await.unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_sent_until_the_pipe_has_taken_its_last_bracket() {
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        for capacity in [1, 1 << 16] {
            // learn how long a call is
            let mut pair = connected(era, capacity).await;
            let (whole, ended) = dies_reading(&mut pair, usize::MAX).await;
            assert_eq!(delivery(&ended), Some(Delivery::Unknown));
            let end = object_end(&whole).unwrap();
            assert_eq!(whole.len(), end + 1, "one line");
            for count in 0..=whole.len() {
                let mut pair = connected(era, capacity).await;
                let (read, ended) = dies_reading(&mut pair, count).await;
                let at = format!(
                    "{era:?}, capacity {capacity}, {count} of {} bytes",
                    whole.len()
                );
                let executions = u64::from(object_end(&read).is_some());
                assert_told_the_truth(&ended, executions, &at);
                let expected = if count + capacity < end {
                    Delivery::NotSent
                } else {
                    Delivery::Unknown
                };
                assert_eq!(delivery(&ended), Some(expected), "{at}");
                let error = ended.unwrap_err();
                assert_eq!(error.kind, ErrorKind::ConnectionLost, "{at}");
                works_again(&mut pair).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_from_its_last_bracket_on() {
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        for outcome in [RESULT, ERROR] {
            for count in 0.. {
                let mut pair = connected(era, 1 << 16).await;
                let running = calling(&pair.upstream, call("x", "{}"));
                let asked = pair.peer.next_line().await.unwrap();
                let answer = answer(&asked, outcome);
                let Some(part) = answer.as_bytes().get(..count) else {
                    break;
                };
                pair.peer.0.write_all(part).await.unwrap();
                pair.peer.0 = tokio::io::duplex(1).0;
                let ended = running.await.unwrap();
                let at = format!("{era:?}, {count} bytes of {answer}");
                assert_told_the_truth(&ended, 1, &at);
                let expected = match object_end(part) {
                    None => Some(Delivery::Unknown),
                    Some(_) if outcome == ERROR => Some(Delivery::Answered),
                    Some(_) => None,
                };
                assert_eq!(delivery(&ended), expected, "{at}");
                if expected == Some(Delivery::Unknown) {
                    let error = ended.unwrap_err();
                    assert_eq!(error.kind, ErrorKind::ConnectionLost, "{at}");
                }
                works_again(&mut pair).await;
            }
        }
    }
}
