//! An HTTP server that is gone after every byte of a request.

use callward_core::{Delivery, ErrorKind};
use callward_testkit::chaos::Break;
use callward_testkit::hostile::Era;
use callward_testkit::hostile::peer::Reply;
use futures_util::future::join_all;
use serde_json::json;

use super::{Bed, assert_told_the_truth, delivery};
use crate::failures::assert_documented;

/// More than the buffers of both ends hold.
const LARGE: usize = 16 << 20;

/// Makes a call that works, and leaves a connection to be used again.
async fn works(bed: &mut Bed, at: &str) {
    let (ended, executions) = bed.call(0).await;
    assert!(ended.is_ok(), "{at}, and then {ended:?}");
    assert_eq!(executions, 1, "{at}");
}

async fn fails_at_every_byte(era: Era, end: Break) {
    let mut bed = Bed::new(era).await;
    bed.peer.plays(|id| {
        let answer = callward_testkit::hostile::result(id, &json!({"content": []}));
        Reply::http(200, "content-type: application/json\r\n", &answer)
    });
    for count in 0.. {
        bed.peer.loses(count, end);
        let (ended, executions) = bed.call(0).await;
        let at = format!("{era:?}, {end:?} after {count} bytes");
        assert_told_the_truth(&ended, executions, &at);
        assert_eq!(delivery(&ended), Some(Delivery::Unknown), "{at}");
        let error = ended.unwrap_err();
        assert_eq!(error.kind, ErrorKind::ConnectionLost, "{at}");
        // what follows fails on a connection that was used, and on a new one otherwise; in a
        // session a ping would follow and fail
        if era == Era::Legacy || (count % 2 == 0) == (end == Break::Close) || executions > 0 {
            works(&mut bed, &at).await;
        }
        if executions > 0 {
            assert!(count > 100, "a request has more than {count} bytes");
            break;
        }
    }
    for count in [0, 1000, 1_000_000] {
        bed.peer.loses(count, end);
        let (ended, executions) = bed.call(LARGE).await;
        let at = format!("{era:?}, {end:?} after {count} bytes of a large one");
        assert_eq!(executions, 0, "{at}");
        assert_documented("HTTP: the connection breaks before", &ended.unwrap_err());
        works(&mut bed, &at).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_the_connection_within_a_request() {
    let all = super::MODES.map(|(era, end)| fails_at_every_byte(era, end));
    join_all(all).await;
}
