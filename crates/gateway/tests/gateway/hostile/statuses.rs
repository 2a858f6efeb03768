//! Every status, with and without the effect before it.

use callward_chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::{Reply, Then};

use super::Http;
use super::http::{LOST, OK, result};

/// What a caller gets of a status without a body.
fn replies(era: Era, status: u16) -> [&'static str; 2] {
    match status {
        // the protocol is switched without a request for it
        101 => ["protocol"; 2],
        // the final answer never comes
        100..=199 => LOST,
        200..=399 => ["protocol"; 2],
        404 if era == Era::Legacy => ["session_lost", "outcome_unknown"],
        401 | 403 | 407 => ["unauthorized"; 2],
        408 => ["timeout"; 2],
        429 => ["rate_limited"; 2],
        400..=499 => ["invalid_call"; 2],
        _ => ["server_fault"; 2],
    }
}

async fn statuses(era: Era) {
    let http = Http::new(era, "30s").await;
    for status in 100..=599 {
        for runs in [false, true] {
            let row = format!("{era:?}, HTTP {status}, runs {runs}");
            let then = match status {
                100..=199 => Then::End(Break::Close),
                _ => Then::Keep,
            };
            http.row(&row, replies(era, status), move |_| {
                Reply::http(status, "", "").runs(runs).then(then)
            })
            .await;
        }
    }
    http.row("good again", OK, |id| {
        Reply::http(200, "content-type: application/json\r\n", &result(id))
    })
    .await;
    http.scene.ends("statuses").await;
}

#[tokio::test]
async fn no_status_makes_an_unsafe_call_of_a_session_run_twice() {
    statuses(Era::Legacy).await;
}

#[tokio::test]
async fn no_status_makes_an_unsafe_call_run_twice() {
    statuses(Era::Modern).await;
}
