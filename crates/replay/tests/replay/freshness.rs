//! Checks of the simulated day.

use std::time::Duration;

use callward_replay::trace::Calls;

use crate::day::{Figures, Freshness, Model, Traffic, measure};

const WITHOUT_EVIDENCE: Freshness = Freshness::Learned { days_before: 0 };
const AFTER_A_DAY: Freshness = Freshness::Learned { days_before: 1 };
const FIXED: Freshness = Freshness::Fixed(Duration::from_secs(300));

fn digest(answer: char) -> String {
    answer.to_string().repeat(40)
}

fn line(session: u32, tool: &str, id: u32, write: bool, answer: char) -> String {
    let sha1 = digest(answer);
    format!(
        r#"{{"session":{session},"tool":"{tool}","args":{{"id":{id}}},"write":{write},"result_sha1":"{sha1}"}}"#
    )
}

/// Sessions that read `news` twice with an outside change between, and an order around a write.
fn recorded() -> Traffic {
    let mut lines = Vec::new();
    for session in 0..20 {
        let id = 100 + session % 4;
        lines.extend([
            line(session, "get_order", id, false, 'a'),
            line(session, "get_news", 1, false, 'b'),
            line(session, "set_order", id, true, 'c'),
            line(session, "get_order", id, false, 'd'),
            line(session, "get_news", 1, false, 'e'),
            line(session, "get_order", id, false, 'd'),
        ]);
    }
    read(lines.join("\n"))
}

fn read(lines: String) -> Traffic {
    let lines = std::io::Cursor::new(lines.into_bytes());
    Traffic::read(Calls::from_reader("day.jsonl", lines).unwrap()).unwrap()
}

fn model(times: u32) -> Model {
    Model {
        times,
        ..Model::default()
    }
}

fn measured(freshness: Freshness, times: u32) -> Figures {
    measure(&recorded(), &model(times), freshness).unwrap()
}

#[test]
fn hits_and_executions_sum_to_all_calls() {
    let none = measured(Freshness::Disabled, 20);
    assert_eq!((none.executions, none.stale), (2_400, 0));
    for freshness in [WITHOUT_EVIDENCE, AFTER_A_DAY, FIXED] {
        let figures = measured(freshness, 20);
        assert_eq!(figures.calls, 2_400, "{freshness:?}");
        assert_eq!(figures.hits + figures.executions, 2_400, "{freshness:?}");
    }
}

#[test]
fn a_fixed_lifetime_gives_stale_hits() {
    let fixed = measured(FIXED, 20);
    assert!(fixed.stale > 0 && fixed.hits > fixed.stale, "{fixed:?}");
    assert!(fixed.oldest > Duration::from_secs(5), "{fixed:?}");
}

#[test]
fn without_evidence_hits_are_within_the_burst_window() {
    // enough sessions that some reads coincide
    let learned = measured(WITHOUT_EVIDENCE, 60);
    assert!(learned.hits > 0, "{learned:?}");
    assert!(learned.oldest <= Duration::from_millis(500), "{learned:?}");
    assert!(learned.stale < measured(FIXED, 60).stale);
}

#[test]
fn evidence_comes_from_the_days_before() {
    assert!(measured(WITHOUT_EVIDENCE, 20).tools.is_empty());
    let tools = measured(AFTER_A_DAY, 20).tools;
    let (_, news) = tools.iter().find(|tool| tool.0 == "get_news").unwrap();
    assert!(news.buckets.iter().any(|bucket| bucket.different > 0));
    assert_eq!(news.allowed, Duration::ZERO);
}

#[test]
fn recorded_times_are_used() {
    let at = |at: u32| {
        let read = line(1, "get_order", 7, false, 'a');
        read.replacen('{', &format!(r#"{{"at_ms":{at},"duration_ms":10,"#), 1)
    };
    let hits = |lines: &[String]| {
        let fixed = Freshness::Fixed(Duration::from_secs(5));
        measure(&read(lines.join("\n")), &model(1), fixed)
            .unwrap()
            .hits
    };
    assert_eq!(hits(&[at(0), at(4_900)]), 1);
    assert_eq!(hits(&[at(0), at(5_100)]), 0);
}
