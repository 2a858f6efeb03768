//! A server on a socket whose answer breaks off.

use callward_chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::Http;

pub(super) const JSON: &str = "content-type: application/json\r\n";
pub(super) const EVENTS: &str = "content-type: text/event-stream\r\n";
pub(super) const CHUNKED: &str = "transfer-encoding: chunked\r\n";
pub(super) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Both tools succeed.
pub(super) const OK: [&str; 2] = ["ok", "ok"];
/// No one knows whether it ran.
pub(super) const LOST: [&str; 2] = ["connection_lost", "outcome_unknown"];

/// A good result.
pub(super) fn result(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"did it"}}]}}}}"#
    )
}

pub(super) fn event(message: &str) -> String {
    format!("data: {message}\n\n")
}

pub(super) fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// A head without a length, and a body.
pub(super) fn open(headers: &str, body: &str) -> Reply {
    Reply::bytes(format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}"))
}

pub(super) fn json(body: &str) -> Reply {
    Reply::http(200, JSON, body)
}

#[tokio::test]
async fn an_answer_that_is_cut_at_any_byte_is_lost() {
    for era in ERAS {
        let http = Http::new(era, "30s").await;
        http.row("whole", OK, |id| json(&result(id))).await;
        let length = json(&result("10000")).len();
        for at in 0..length {
            // an id has as many digits as it has: the last bytes may be cut off or not
            let broken = [Break::Close, Break::Reset][at % 2];
            let cut = move |id: &str| {
                let whole = json(&result(id));
                let at = at.min(whole.len() - 1);
                whole.cut(at).then(Then::End(broken))
            };
            http.row(&format!("{era:?}, JSON cut at {at}"), LOST, cut)
                .await;
        }
        http.scene.ends("JSON cut").await;
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_before_its_event_ends_is_lost() {
    let http = Http::new(Era::Legacy, "30s").await;
    let whole = |id: &str| open(EVENTS, &event(&result(id)));
    http.row("whole", OK, whole).await;
    for at in 0..whole("10000").len() - 1 {
        let cut = move |id: &str| {
            let whole = whole(id);
            let at = at.min(whole.len() - 2);
            whole.cut(at)
        };
        http.row(&format!("events cut at {at}"), LOST, cut).await;
    }
    http.scene.ends("events cut").await;
}

#[tokio::test]
async fn a_chunked_answer_that_breaks_is_lost_or_whole() {
    let http = Http::new(Era::Modern, "30s").await;
    let headers = format!("{JSON}{CHUNKED}");
    let whole = move |id: &str| {
        let result = result(id);
        let (first, rest) = result.split_at(20);
        open(&headers, &(chunk(first) + &chunk(rest)))
    };
    // the message is whole, only the last chunk is missing
    http.row("without the last chunk", OK, whole.clone()).await;
    for at in 0..whole("10000").len() {
        let whole = whole.clone();
        // a message that is whole may come without the end of its chunk
        let cut = move |id: &str| {
            let whole = whole(id);
            let at = at.min(whole.len() - 3);
            whole.cut(at)
        };
        http.row(&format!("chunks cut at {at}"), LOST, cut).await;
    }
    for (row, size) in [
        ("no number", "zz\r\n"),
        ("negative", "-1\r\n"),
        ("too large", "fffffffffffffffff\r\n"),
        ("endless digits", "00000000000000000000000000000000000\r\n"),
        ("no line end", "5hello"),
    ] {
        let headers = format!("{JSON}{CHUNKED}");
        http.row(row, LOST, move |_| open(&headers, size)).await;
    }
    http.scene.ends("chunks").await;
}
