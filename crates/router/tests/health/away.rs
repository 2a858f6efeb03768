//! Servers that somebody says are not there.

use callward_core::ErrorKind;
use callward_router::{HealthState, Presence, StrategyName, Witness};
use callward_testkit::tool;

use crate::bed::{Bed, server};

const WITNESSES: [Witness; 3] = [Witness::Connection, Witness::Operator, Witness::Ping];

#[tokio::test(start_paused = true)]
async fn a_server_nobody_has_is_refused() {
    let (bed, _) = Bed::new(StrategyName::default(), 2);
    let ghost = server("ghost");
    for presence in [Presence::Up, Presence::Down] {
        let refused = bed.pool.set_health(&ghost, Witness::Operator, presence);
        assert_eq!(refused.unwrap_err().server(), &ghost);
    }
    assert!(bed.pool.health(&ghost).is_err());
    assert!(bed.told.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_away_gets_nothing_until_the_same_witness_says_it_is_back() {
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    for who in WITNESSES {
        let (bed, _) = Bed::new(StrategyName::RoundRobin, 3);
        bed.witness("a", who, Presence::Down);
        bed.send_many(&read, 30).await;
        bed.send_many(&delete, 30).await;
        assert_eq!((bed.got("a"), bed.got("b")), (0, 30), "{who:?}");
        for other in WITNESSES {
            if other != who {
                bed.witness("a", other, Presence::Up);
            }
        }
        bed.send_many(&read, 30).await;
        assert_eq!(bed.got("a"), 0, "{who:?}");
        bed.witness("a", who, Presence::Up);
        assert_eq!(bed.state("a"), HealthState::SlowStart);
        bed.send_many(&delete, 30).await;
        assert_eq!(bed.got("a"), 10, "{who:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_all_are_away_a_read_is_sent_all_the_same_and_a_destructive_call_is_not() {
    let read = tool("read").read_only().build();
    let delete = tool("delete").destructive().build();
    let (bed, _) = Bed::new(StrategyName::RoundRobin, 2);
    bed.witness("a", Witness::Ping, Presence::Down);
    bed.witness("b", Witness::Operator, Presence::Down);
    assert!(bed.send(&read).await.is_ok());
    let error = bed.send(&delete).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoEligibleServer);
    let text = error.message();
    assert!(text.contains("a cannot be reached"), "{text}");
    assert!(text.contains("b is held down by an operator"), "{text}");
}
