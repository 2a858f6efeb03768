//! Whatever happens to servers, in whatever order.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Send(usize, Risk),
    Settle(usize, Verdict),
    Witness(usize, Witness, Presence),
    Join(usize),
    Leave(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let server = 0..5_usize;
    let risk = prop_oneof![3 => Just(Risk::Safe), 1 => Just(Risk::Write)];
    let verdict = prop_oneof![
        4 => Just(Verdict::Fault), 1 => Just(Verdict::Nothing), 2 => Just(Verdict::Good)
    ];
    let who = prop_oneof![
        Just(Witness::Connection),
        Just(Witness::Operator),
        Just(Witness::Ping)
    ];
    let presence = prop_oneof![Just(Presence::Up), Just(Presence::Down)];
    prop_oneof![
        10 => (server.clone(), risk).prop_map(|(server, risk)| Step::Send(server, risk)),
        10 => (any::<usize>(), verdict).prop_map(|(call, verdict)| Step::Settle(call, verdict)),
        1 => (server.clone(), who, presence)
            .prop_map(|(server, who, up)| Step::Witness(server, who, up)),
        1 => server.clone().prop_map(Step::Join),
        1 => server.prop_map(Step::Leave),
        3 => (0..40_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(steps in prop::collection::vec(step(), 0..400)) {
        let config = HealthConfig::default().with_faults(2).with_min_calls(3).with_min_servers(2);
        let mut bed = Bed::new(5, config);
        let mut sent: Vec<(usize, Ticket)> = Vec::new();
        for step in steps {
            let before = bed.set.counts();
            match step {
                Step::Send(server, risk) => {
                    let doubt = bed.doubt(server, risk);
                    let word = bed.servers[server].word();
                    match bed.admit(server, risk) {
                        Ok(ticket) => {
                            prop_assert_eq!(doubt, None, "no one to be quicker");
                            if word.has(Word::EJECTED) {
                                prop_assert!(matches!(ticket, Ticket::Probe(_)));
                                let grace = risk == Risk::Write && word.has(Word::SAFE);
                                let wait = if grace { config.eject_time } else { Duration::ZERO };
                                prop_assert!(bed.set.moment(bed.now) >= word.time().after(wait));
                            }
                            sent.push((server, ticket));
                        }
                        Err(found) => prop_assert_eq!(doubt, Some(found)),
                    }
                }
                Step::Settle(call, verdict) if !sent.is_empty() => {
                    let (server, ticket) = sent.swap_remove(call % sent.len());
                    bed.settle(server, ticket, verdict);
                }
                Step::Settle(..) => {}
                Step::Witness(server, who, up) => {
                    bed.servers[server].witness(who, up, &bed.set, bed.now);
                }
                Step::Join(server) => bed.servers[server].join(&bed.set, Start::Slow, bed.now),
                Step::Leave(server) => bed.servers[server].leave(),
                Step::Pass(secs) => bed.pass(Duration::from_secs(secs)),
            }
            // what the set counts is what there is
            let words: Vec<Word> = bed.servers.iter().map(ServerHealth::word).collect();
            let members = words.iter().filter(|word| word.has(Word::MEMBER));
            let of = |flags| members.clone().filter(|word| word.has(flags)).count();
            let counts = bed.set.counts();
            prop_assert_eq!(counts.servers as usize, of(Word::MEMBER));
            prop_assert_eq!(counts.ejected as usize, of(Word::EJECTED));
            prop_assert_eq!(counts.unfit as usize, of(Word::UNFIT));
            // nobody is ejected who is the last
            if counts.ejected > before.ejected {
                prop_assert!(counts.unfit < counts.servers);
                prop_assert_eq!(counts.ejected, 1, "30 % of five at most");
            }
            // a probe only where somebody is ejected
            for word in &words {
                prop_assert!(!word.has(Word::PROBING) || word.has(Word::EJECTED));
                prop_assert!(!(word.has(Word::STARTING) && word.has(Word::EJECTED)));
            }
            for server in 0..5 {
                let share = bed.share(server);
                prop_assert!(0.0 < share && share <= 1.0);
            }
        }
    }
}
