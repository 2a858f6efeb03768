//! A pipe that breaks at every byte.

use callward_core::{Delivery, ErrorKind, ToolServer};
use callward_mcp::client::{EraChoice, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{Ended, assert_told_the_truth, delivery, object_end};
use crate::script::{DISCOVERED, INITIALIZED, LONG, Script, call, scripted};

const RESULT: &str = r#""result":{"content":[{"type":"text","text":"{\"}"}]}"#;
const ERROR: &str = r#""error":{"code":-32603,"message":"no } \" way"}"#;

/// One connected upstream, and the far end of its pipe.
struct Pair {
    upstream: Upstream,
    script: Script,
    peer: DuplexStream,
}

/// Connects over a pipe that holds `capacity` bytes.
async fn connected(era: EraChoice, capacity: usize) -> Pair {
    let (upstream, mut script) = scripted(capacity, |options| options.era = era);
    let mut peer = script.stream().await;
    greet(&mut peer).await;
    upstream.ready(LONG).await.unwrap();
    Pair {
        upstream,
        script,
        peer,
    }
}

async fn line(peer: &mut DuplexStream) -> String {
    let mut line = Vec::new();
    loop {
        match peer.read_u8().await.unwrap() {
            b'\n' => return String::from_utf8(line).unwrap(),
            byte => line.push(byte),
        }
    }
}

fn id_in(request: &str) -> u64 {
    let request: serde_json::Value = serde_json::from_str(request).unwrap();
    request["id"].as_u64().unwrap()
}

async fn greet(peer: &mut DuplexStream) {
    let hello = line(peer).await;
    let is_legacy = hello.contains("initialize");
    let result = if is_legacy { INITIALIZED } else { DISCOVERED };
    let answer = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n",
        id_in(&hello)
    );
    peer.write_all(answer.as_bytes()).await.unwrap();
    if is_legacy {
        assert!(line(peer).await.contains("notifications/initialized"));
    }
}

/// Lets every task go as far as it gets.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Reads `count` bytes of a call, then is gone. Returns what it read and what the caller gets.
async fn dies_reading(pair: &mut Pair, count: usize) -> (Vec<u8>, Ended) {
    let running = tokio::spawn(pair.upstream.call(call("x", r#"{"a":"}\""}"#)));
    let mut read = Vec::new();
    while read.len() < count && read.last() != Some(&b'\n') {
        read.push(pair.peer.read_u8().await.unwrap());
    }
    settle().await; // the writer fills the space that was made
    pair.peer = tokio::io::duplex(1).0;
    (read, running.await.unwrap())
}

/// Makes a call on the next connection. The first call it sees has to be this one.
async fn works_again(pair: &mut Pair) {
    pair.peer = pair.script.stream().await;
    greet(&mut pair.peer).await;
    settle().await;
    let running = tokio::spawn(pair.upstream.call(call("after", "{}")));
    let asked = line(&mut pair.peer).await;
    assert!(asked.contains(r#""name":"after""#), "{asked}");
    let answer = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},{RESULT}}}\n",
        id_in(&asked)
    );
    pair.peer.write_all(answer.as_bytes()).await.unwrap();
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
                let executions = usize::from(object_end(&read).is_some());
                assert_told_the_truth(&ended, executions, &at);
                let expected = if count + capacity < end {
                    Delivery::NotSent
                } else {
                    Delivery::Unknown
                };
                assert_eq!(delivery(&ended), Some(expected), "{at}");
                let error = ended.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{at}");
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
                let running = tokio::spawn(pair.upstream.call(call("x", "{}")));
                let asked = line(&mut pair.peer).await;
                let answer = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},{outcome}}}\n",
                    id_in(&asked)
                );
                let Some(part) = answer.as_bytes().get(..count) else {
                    break;
                };
                pair.peer.write_all(part).await.unwrap();
                pair.peer = tokio::io::duplex(1).0;
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
                    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{at}");
                }
                works_again(&mut pair).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_at_any_byte_is_never_sent_again() {
    let mut pair = connected(EraChoice::Modern, 1).await;
    for count in 0..120 {
        let running = tokio::spawn(pair.upstream.call(call("given-up", "{}")));
        let mut read = Vec::new();
        while read.len() < count {
            read.push(pair.peer.read_u8().await.unwrap());
        }
        settle().await;
        running.abort();
        settle().await;
        // what was begun is written to its end, for the sake of those behind it
        let after = tokio::spawn(pair.upstream.call(call("after", "{}")));
        let mut names = 0;
        loop {
            let rest = line(&mut pair.peer).await;
            let whole = String::from_utf8(std::mem::take(&mut read)).unwrap() + &rest;
            if whole.contains("given-up") {
                names += 1;
            } else if whole.contains("after") {
                let answer = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},{RESULT}}}\n",
                    id_in(&whole)
                );
                pair.peer.write_all(answer.as_bytes()).await.unwrap();
                break;
            } else {
                assert!(whole.contains("notifications/cancelled"), "{whole}");
            }
        }
        assert!(names <= 1, "{count} bytes: sent {names} times");
        after.await.unwrap().unwrap();
    }
}
