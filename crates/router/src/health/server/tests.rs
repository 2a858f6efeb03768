mod steps;

use callward_core::ReplicaSetId;

use super::*;
use crate::health::verdict::Verdict;
use crate::health::{Health, HealthConfig};

const SECOND: Duration = Duration::from_secs(1);

/// A set whose servers are sent calls one after the other, at times the test chooses.
struct Bed {
    set: Arc<SetHealth>,
    servers: Vec<ServerHealth>,
    start: Instant,
    now: Instant,
}

impl Bed {
    fn new(servers: usize, config: HealthConfig) -> Self {
        let id = ReplicaSetId::new("orders").unwrap();
        let set = Arc::new(SetHealth::new(id, Health::of_valid(config, Arc::default())));
        let start = Instant::now();
        let servers: Vec<_> = (0..servers).map(|_| ServerHealth::default()).collect();
        for server in &servers {
            server.join(&set, Start::Full, start);
        }
        Self {
            set,
            servers,
            start,
            now: start,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    fn at(&mut self, secs: u64) {
        self.now = self.start + Duration::from_secs(secs);
    }

    fn admit(&self, server: usize, risk: Risk) -> Result<Ticket, Doubt> {
        self.servers[server].admit(risk, &self.set, || self.now)
    }

    fn settle(&self, server: usize, ticket: Ticket, verdict: Verdict) -> Option<HealthChange> {
        self.servers[server].settle(ticket, verdict, &self.set, || self.now)
    }

    /// Sends a read, if it is let through.
    fn read(&self, server: usize, verdict: Verdict) -> Option<HealthChange> {
        let ticket = self.admit(server, Risk::Safe).ok()?;
        self.settle(server, ticket, verdict)
    }

    fn fail(&self, server: usize, times: usize) {
        for _ in 0..times {
            self.read(server, Verdict::Fault);
        }
    }

    fn doubt(&self, server: usize, risk: Risk) -> Option<Doubt> {
        self.servers[server].doubt(risk, &self.set, || self.now)
    }

    fn state(&self, server: usize) -> HealthState {
        self.servers[server].state(&self.set, self.now)
    }

    fn share(&self, server: usize) -> f64 {
        self.servers[server].share(&self.set, || self.now)
    }

    fn ejected(&self) -> u32 {
        self.set.counts().ejected
    }
}

/// Without comparing shares, so that faults in a row are all that ejects.
fn config() -> HealthConfig {
    HealthConfig::default().with_outlier(None)
}

#[test]
fn five_faults_in_a_row_eject_and_a_good_call_begins_the_row_anew() {
    let bed = Bed::new(3, config());
    bed.fail(0, 4);
    bed.read(0, Verdict::Good);
    bed.fail(0, 4);
    assert_eq!(bed.read(0, Verdict::Nothing), None);
    assert_eq!(bed.state(0), HealthState::Healthy);
    let change = bed.read(0, Verdict::Fault).unwrap();
    assert_eq!(
        (change.from, change.to),
        (HealthState::Healthy, HealthState::Ejected)
    );
    assert_eq!(change.reason, "5 faults in a row");
    assert_eq!(bed.doubt(0, Risk::Safe), Some(Doubt::Ejected));
    assert_eq!(bed.doubt(1, Risk::Safe), None);
    let status = bed.servers[0].status(&bed.set, bed.now);
    assert_eq!(
        (status.ejections, status.time_to_probe),
        (1, Some(30 * SECOND))
    );
    assert_eq!(status.last_ejection.as_deref(), Some("5 faults in a row"));
}

#[test]
fn a_server_that_fails_at_once_gets_its_probes_and_no_more() {
    let mut bed = Bed::new(10, config());
    let mut got = 0;
    // each second everyone is offered 10 reads
    for second in 0..600 {
        bed.at(second);
        for server in 0..10 {
            for _ in 0..10 {
                let Ok(ticket) = bed.admit(server, Risk::Safe) else {
                    continue;
                };
                let verdict = if server == 7 {
                    Verdict::Fault
                } else {
                    Verdict::Good
                };
                got += usize::from(server == 7);
                bed.settle(server, ticket, verdict);
            }
        }
    }
    // five, and then one after 30, 90, 180, 300, 450 s
    assert_eq!(got, 10);
}

#[test]
fn it_comes_back_by_one_probe_and_slowly() {
    let mut bed = Bed::new(3, config());
    bed.fail(0, 5);
    bed.at(29);
    assert_eq!(bed.admit(0, Risk::Safe), Err(Doubt::Ejected));
    bed.at(30);
    let probe = bed.admit(0, Risk::Safe).unwrap();
    assert_eq!(bed.state(0), HealthState::Probing);
    assert_eq!(
        bed.admit(0, Risk::Safe),
        Err(Doubt::Ejected),
        "one at a time"
    );
    let change = bed.settle(0, probe, Verdict::Good).unwrap();
    assert_eq!(
        (change.from, change.to),
        (HealthState::Probing, HealthState::SlowStart)
    );
    assert_eq!((bed.doubt(0, Risk::Write), bed.ejected()), (None, 0));
    assert!((bed.share(0) - 0.1).abs() < 1e-9);
    bed.at(45);
    assert!((bed.share(0) - 0.5).abs() < 1e-9);
    bed.at(60);
    assert_eq!(bed.state(0), HealthState::Healthy);
    bed.read(0, Verdict::Good);
    assert!(
        !bed.servers[0].word().has(Word::STARTING),
        "nobody asks for the time any more"
    );
}

#[test]
fn a_probe_that_is_dropped_gives_its_place_back_and_one_that_hangs_is_written_off() {
    let mut bed = Bed::new(3, config());
    bed.fail(0, 5);
    bed.at(30);
    let dropped = bed.admit(0, Risk::Safe).unwrap();
    assert_eq!(bed.settle(0, dropped, Verdict::Nothing), None);
    let hangs = bed.admit(0, Risk::Safe).unwrap();
    bed.at(59);
    assert_eq!(bed.admit(0, Risk::Safe), Err(Doubt::Ejected));
    bed.at(60);
    let another = bed.admit(0, Risk::Safe).unwrap();
    assert_eq!(
        bed.settle(0, hangs, Verdict::Good),
        None,
        "too late to count"
    );
    assert_eq!(bed.state(0), HealthState::Probing);
    bed.settle(0, another, Verdict::Fault);
    assert_eq!(bed.state(0), HealthState::Ejected);
    bed.at(60 + 59);
    assert_eq!(
        bed.admit(0, Risk::Safe),
        Err(Doubt::Ejected),
        "for twice as long"
    );
    bed.at(60 + 60);
    assert!(bed.admit(0, Risk::Safe).is_ok());
}

#[test]
fn a_write_waits_for_a_read_to_go_first_but_not_for_ever() {
    let mut bed = Bed::new(3, config());
    bed.fail(0, 5);
    bed.at(59);
    assert_eq!(bed.doubt(0, Risk::Write), Some(Doubt::Ejected));
    assert_eq!(bed.admit(0, Risk::Write), Err(Doubt::Ejected));
    assert_eq!(bed.doubt(0, Risk::Safe), None);
    bed.at(60);
    assert_eq!(bed.doubt(0, Risk::Write), None);

    // where nobody ever read, there is nothing to wait for
    let mut bed = Bed::new(3, config());
    for _ in 0..5 {
        let ticket = bed.admit(0, Risk::Write).unwrap();
        bed.settle(0, ticket, Verdict::Fault);
    }
    bed.at(29);
    assert_eq!(bed.doubt(0, Risk::Write), Some(Doubt::Ejected));
    bed.at(30);
    assert_eq!(bed.doubt(0, Risk::Write), None);
}

#[test]
fn outcomes_of_calls_sent_before_do_not_count() {
    let bed = Bed::new(3, config());
    let late: Vec<_> = (0..10).map(|_| bed.admit(0, Risk::Safe).unwrap()).collect();
    bed.fail(0, 5);
    for ticket in late {
        assert_eq!(bed.settle(0, ticket, Verdict::Good), None);
    }
    assert_eq!(bed.state(0), HealthState::Ejected);
    bed.settle(0, Ticket::Extra, Verdict::Good);
    assert_eq!(bed.state(0), HealthState::Ejected);
}

#[test]
fn not_more_than_the_share_and_never_the_last() {
    for (servers, most) in [(1, 0), (2, 1), (3, 1), (10, 3), (100, 30)] {
        let bed = Bed::new(servers, config());
        for server in 0..servers {
            bed.fail(server, 20);
        }
        assert_eq!(bed.ejected(), most, "of {servers}");
    }
    let bed = Bed::new(3, config());
    for server in [1, 2] {
        bed.servers[server].witness(Witness::Connection, Presence::Down, &bed.set, bed.now);
    }
    bed.fail(0, 20);
    assert_eq!(bed.state(0), HealthState::Healthy, "the last that is there");
}

#[test]
fn where_all_fail_in_a_row_nobody_is_left_out() {
    let bed = Bed::new(3, config());
    for _ in 0..4 {
        for server in 0..3 {
            bed.read(server, Verdict::Good);
        }
    }
    for _ in 0..50 {
        for server in 0..3 {
            bed.read(server, Verdict::Fault);
        }
    }
    assert_eq!(bed.ejected(), 0);
    // once two are well again, the third is left out
    for _ in 0..100 {
        bed.read(0, Verdict::Good);
        bed.read(1, Verdict::Good);
        bed.read(2, Verdict::Fault);
    }
    assert_eq!(bed.state(2), HealthState::Ejected);
}

#[test]
fn a_probe_that_fails_as_all_others_do_ends_the_ejection() {
    let mut bed = Bed::new(3, config());
    bed.fail(0, 5);
    for _ in 0..20 {
        bed.fail(1, 1);
        bed.fail(2, 1);
    }
    bed.at(30);
    let change = bed.read(0, Verdict::Fault).unwrap();
    assert_eq!(change.to, HealthState::Healthy, "{}", change.reason);
    assert_eq!(bed.ejected(), 0);
    assert!((bed.share(0) - 1.0).abs() < 1e-9);
}

#[test]
fn a_share_of_good_calls_far_below_the_others_ejects() {
    let mut bed = Bed::new(3, HealthConfig::default());
    let mut changes = Vec::new();
    for call in 0..100_u64 {
        for server in 0..3 {
            let fails = server == 1 && call % 2 == 0;
            let verdict = if fails { Verdict::Fault } else { Verdict::Good };
            changes.extend(bed.read(server, verdict));
        }
        bed.pass(SECOND / 5);
    }
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].to, HealthState::Ejected);
    // 10 s of calls, the first of which began the window
    assert_eq!(
        changes[0].reason,
        "50 % of 50 calls ended well, 100 % of the others'"
    );
    assert_eq!(bed.state(1), HealthState::Ejected);
}

#[test]
fn where_all_begin_to_fail_nobody_is_ejected_for_his_share() {
    let mut bed = Bed::new(10, HealthConfig::default().with_faults(0));
    for call in 0..400 {
        for server in 0..10 {
            let verdict = if call < 170 {
                Verdict::Good
            } else {
                Verdict::Fault
            };
            bed.read(server, verdict);
            bed.pass(SECOND / 100);
        }
    }
    assert_eq!(bed.ejected(), 0);
}

#[test]
fn who_is_away_is_in_doubt_whatever_its_calls_say() {
    let mut bed = Bed::new(3, config());
    let tell = |bed: &Bed, who, up| bed.servers[0].witness(who, up, &bed.set, bed.now);
    let change = tell(&bed, Witness::Ping, Presence::Down).unwrap();
    assert_eq!(change.to, HealthState::Unreachable);
    assert_eq!(tell(&bed, Witness::Ping, Presence::Down), None, "known");
    assert_eq!(
        tell(&bed, Witness::Connection, Presence::Down),
        None,
        "not there is not there"
    );
    assert_eq!(bed.doubt(0, Risk::Safe), Some(Doubt::Unreachable));
    assert_eq!(bed.set.counts().unfit, 1);
    tell(&bed, Witness::Operator, Presence::Down);
    assert_eq!(bed.doubt(0, Risk::Safe), Some(Doubt::HeldDown));
    bed.at(1_000);
    assert_eq!(
        bed.admit(0, Risk::Safe),
        Err(Doubt::HeldDown),
        "no time ends that"
    );
    tell(&bed, Witness::Connection, Presence::Up);
    tell(&bed, Witness::Operator, Presence::Up);
    assert_eq!(bed.doubt(0, Risk::Safe), Some(Doubt::Unreachable));
    let change = tell(&bed, Witness::Ping, Presence::Up).unwrap();
    assert_eq!(change.to, HealthState::SlowStart);
    assert_eq!(bed.doubt(0, Risk::Write), None);
    assert_eq!(bed.set.counts().unfit, 0);
}

#[test]
fn a_connection_that_is_back_ends_an_ejection_but_the_next_is_longer() {
    let mut bed = Bed::new(3, config());
    bed.fail(0, 5);
    let tell = |bed: &Bed, up| bed.servers[0].witness(Witness::Connection, up, &bed.set, bed.now);
    tell(&bed, Presence::Down);
    bed.at(1);
    tell(&bed, Presence::Up);
    assert_eq!((bed.state(0), bed.ejected()), (HealthState::SlowStart, 0));
    bed.fail(0, 5);
    let status = bed.servers[0].status(&bed.set, bed.now);
    assert_eq!(status.time_to_probe, Some(60 * SECOND));
}

#[test]
fn who_joins_others_is_eased_in_and_who_leaves_is_not_counted() {
    let mut bed = Bed::new(3, config());
    let late = ServerHealth::default();
    late.join(&bed.set, Start::Slow, bed.now);
    bed.servers.push(late);
    assert!((bed.share(3) - 0.1).abs() < 1e-9);
    bed.fail(0, 5);
    let leave = |bed: &Bed, server: usize| bed.servers[server].leave();
    leave(&bed, 0);
    let counts = bed.set.counts();
    assert_eq!((counts.servers, counts.ejected, counts.unfit), (3, 0, 0));
    bed.servers[0].join(&bed.set, Start::Slow, bed.now);
    assert_eq!(bed.state(0), HealthState::SlowStart, "it begins anew");
    for server in 0..4 {
        leave(&bed, server);
        leave(&bed, server);
    }
    assert_eq!(bed.set.counts().servers, 0);
}
