//! Requests larger than what the system buffers before the server reads.

use callward_core::Delivery;
use callward_mcp::client::EraChoice;

use super::socket::{End, Fault, Server};
use super::{assert_told_the_truth, delivery};
use crate::failures::assert_documented;

/// More than the buffers of both ends hold.
const LARGE: usize = 16 << 20;

#[tokio::test]
async fn a_large_call_is_not_sent_while_its_end_is_still_here() {
    for (era, end) in [
        (EraChoice::Legacy, End::Fin),
        (EraChoice::Modern, End::Reset),
    ] {
        let mut server = Server::start().await;
        let upstream = server.upstream(era).await;
        for count in [0, 1000, 1_000_000] {
            let fault = Fault::Read(count, end);
            let (ended, executions, seen) = server.faulty(&upstream, fault, LARGE).await;
            let at = format!("{era:?}, {end:?} after {count} bytes: {seen:?}");
            assert_told_the_truth(&ended, executions, &at);
            assert_eq!(seen.read, count, "{at}");
            assert_documented("HTTP: the connection breaks before", &ended.unwrap_err());
            let (ended, executions) = server.call(&upstream, 0).await;
            assert!(ended.is_ok(), "{at}, and then {ended:?}");
            assert_eq!(executions, 1, "{at}");
        }
        // read whole, it may have run
        let fault = Fault::Read(usize::MAX, end);
        let (ended, executions, _) = server.faulty(&upstream, fault, LARGE).await;
        assert_eq!(executions, 1);
        assert_eq!(delivery(&ended), Some(Delivery::Unknown));
    }
}
