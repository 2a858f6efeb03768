//! How the state of a request changes. Pure: the time is an argument.

use callward_core::{Approver, Principal};

use crate::clock::millis;
use crate::{
    ApprovalConfig, ApprovalError, Asked, Decision, Grant, Key, Outcome, Request, RequestId, State,
};

/// What happens to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A person decides.
    Decide(Decision),
    /// The person at the client that asks decides, where that counts.
    Answer { approves: bool },
    /// This principal takes it back.
    Withdraw(Principal),
    /// Its time is over.
    Expire,
    /// This process is about to send the call, or its next round.
    Begin { is_round: bool, by: String },
    /// The call has ended so.
    End(Outcome),
    /// The process that ran the call has left it.
    Lose,
}

impl Step {
    /// Returns the request after the step.
    pub(crate) fn of(self, request: &Request, now: u64) -> Result<Request, ApprovalError> {
        let mut next = request.clone();
        next.state = self.apply(request, &mut next, now)?;
        next.since_ms = now;
        next.revision += 1;
        Ok(next)
    }

    fn apply(self, was: &Request, next: &mut Request, now: u64) -> Result<State, ApprovalError> {
        let is_overdue = was.is_overdue(now);
        let ended = || ApprovalError::Ended {
            id: was.id.clone(),
            state: if is_overdue {
                State::Expired
            } else {
                was.state
            },
        };
        match (self, was.state) {
            (Self::Decide(decision), _) if decision.by == was.asked.principal => {
                Err(ApprovalError::DecidedByTheOneThatAsks)
            }
            (Self::Decide(decision), _)
                if !was.asked.roles.is_empty()
                    && !decision
                        .roles
                        .iter()
                        .any(|has| was.asked.roles.contains(has)) =>
            {
                Err(ApprovalError::LacksRole(was.asked.roles.clone()))
            }
            (Self::Answer { approves }, State::Pending)
                if !is_overdue && was.asked.by == Approver::Client =>
            {
                next.decision = Some(Decision {
                    approves,
                    by: was.asked.principal.clone(),
                    roles: Vec::new(),
                    channel: "client".to_owned(),
                    note: None,
                });
                next.decided_ms = Some(now);
                Ok(decided(approves))
            }
            (Self::Decide(decision), State::Pending) if !is_overdue => {
                let approves = decision.approves;
                (next.decision, next.decided_ms) = (Some(decision), Some(now));
                Ok(decided(approves))
            }
            (Self::Withdraw(by), _) if by != was.asked.principal => {
                Err(ApprovalError::NotTheOneThatAsks)
            }
            (Self::Withdraw(_), State::Pending | State::Approved) if !is_overdue => {
                Ok(State::Withdrawn)
            }
            (Self::Expire, _) if is_overdue => Ok(State::Expired),
            (Self::Begin { is_round, by }, state)
                if (is_round && was.awaits_round)
                    || (!is_round && !is_overdue && state == State::Approved) =>
            {
                (next.awaits_round, next.consumed_by) = (false, Some(by));
                Ok(State::Consumed)
            }
            (Self::End(outcome), State::Consumed) if !was.awaits_round => {
                next.awaits_round = outcome == Outcome::AwaitsRound;
                Ok(match outcome {
                    Outcome::Succeeded => State::Succeeded,
                    Outcome::Failed => State::Failed,
                    Outcome::Unknown => State::Unknown,
                    Outcome::NotSent => State::Approved,
                    Outcome::AwaitsRound => State::Consumed,
                })
            }
            (Self::Lose, State::Consumed) => Ok(State::Unknown),
            _ => Err(ended()),
        }
    }
}

const fn decided(approves: bool) -> State {
    if approves {
        State::Approved
    } else {
        State::Denied
    }
}

/// Returns the request that answers for what is asked, given the latest of its key: an open one is
/// joined, and a denial bars for its cool-off.
pub(crate) fn answering(latest: &Request, now: u64, config: &ApprovalConfig) -> bool {
    match latest.state {
        State::Pending | State::Approved => !latest.is_overdue(now),
        State::Denied => now < latest.since_ms.saturating_add(millis(config.cool_off)),
        _ => false,
    }
}

/// Makes a request, which a grant approves if there is one.
pub(crate) fn new(
    id: RequestId,
    asked: Asked,
    latest: Option<&Request>,
    grant: Option<&Grant>,
    now: u64,
    config: &ApprovalConfig,
) -> Request {
    // after the latest one, so that the order survives a restart
    let created_ms = latest.map_or(now, |latest| now.max(latest.created_ms.saturating_add(1)));
    Request {
        id,
        asked,
        created_ms,
        expires_ms: now.saturating_add(millis(config.expires)),
        state: grant.map_or(State::Pending, |_| State::Approved),
        since_ms: now,
        decision: grant.map(Grant::decision),
        grant: grant.map(|grant| grant.id.clone()),
        decided_ms: grant.map(|_| now),
        consumed_by: None,
        awaits_round: false,
        revision: 0,
    }
}

impl Request {
    /// Returns what identifies its call.
    #[must_use]
    pub fn key(&self) -> Key {
        self.asked.key()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use callward_core::ToolCall;
    use callward_testkit::tool;

    use super::*;

    pub(crate) fn request(state: State) -> Request {
        let call = ToolCall::new(tool("wipe").destructive().build(), r#"{"id":7}"#);
        let asked = Asked::of(&call, "x").unwrap();
        let config = ApprovalConfig::default();
        let id = RequestId::random().unwrap();
        Request {
            state,
            ..new(id, asked, None, None, 1_000, &config)
        }
    }

    fn begin(is_round: bool) -> Step {
        let by = "a".to_owned();
        Step::Begin { is_round, by }
    }

    fn decide(approves: bool, by: &str) -> Step {
        Step::Decide(Decision {
            approves,
            by: Principal::new(by),
            roles: Vec::new(),
            channel: "cli".to_owned(),
            note: Some("no".to_owned()),
        })
    }

    #[test]
    fn each_step_leads_where_the_table_says_and_nowhere_else() {
        use State::Withdrawn;
        use State::{Approved, Consumed, Denied, Expired, Failed, Pending, Succeeded, Unknown};
        let asker = || Principal::new("local");
        let (soon, late) = (2_000, 1_000 + 15 * 60_000);
        // a step, when, the states that it leads from, and where to
        let table: [(Step, u64, &[State], State); 15] = [
            (decide(true, "op"), soon, &[Pending], Approved),
            (decide(false, "op"), soon, &[Pending], Denied),
            (decide(true, "op"), late, &[], Approved),
            (decide(true, "local"), soon, &[], Approved),
            (
                Step::Withdraw(asker()),
                soon,
                &[Pending, Approved],
                Withdrawn,
            ),
            (Step::Withdraw(asker()), late, &[], Withdrawn),
            (Step::Withdraw(Principal::new("op")), soon, &[], Withdrawn),
            (Step::Expire, late, &[Pending, Approved], Expired),
            (Step::Expire, late - 1, &[], Expired),
            (begin(false), soon, &[Approved], Consumed),
            (begin(false), late, &[], Consumed),
            (begin(true), soon, &[], Consumed),
            (Step::End(Outcome::NotSent), late, &[Consumed], Approved),
            (Step::End(Outcome::AwaitsRound), late, &[Consumed], Consumed),
            (Step::Lose, late, &[Consumed], Unknown),
        ];
        let all = [
            Pending, Approved, Denied, Expired, Withdrawn, Consumed, Succeeded, Failed, Unknown,
        ];
        assert_eq!(all, State::ALL);
        for (step, now, from, to) in table {
            for state in all {
                let was = request(state);
                let next = step.clone().of(&was, now).ok();
                let expected = from.contains(&state).then_some(to);
                assert_eq!(
                    next.as_ref().map(|next| next.state),
                    expected,
                    "{step:?} {state}"
                );
                let revision = next.map(|next| (next.revision, next.since_ms));
                assert_eq!(revision, expected.map(|_| (1, now)));
            }
        }
    }

    #[test]
    fn a_round_goes_on_once_and_only_if_the_server_asked() {
        let mut open = request(State::Consumed);
        open.awaits_round = true;
        for outcome in [Outcome::Succeeded, Outcome::NotSent, Outcome::AwaitsRound] {
            assert!(
                Step::End(outcome).of(&open, 2_000).is_err(),
                "no round runs"
            );
        }
        let resumed = begin(true).of(&open, 2_000).unwrap();
        assert_eq!(
            (resumed.state, resumed.awaits_round),
            (State::Consumed, false)
        );
        assert!(begin(true).of(&resumed, 2_000).is_err());
        assert!(Step::End(Outcome::Succeeded).of(&resumed, 2_000).is_ok());
    }

    #[test]
    fn an_error_says_the_state_or_who_may_not() {
        let shown = |step: Step, state, now| step.of(&request(state), now).unwrap_err().to_string();
        let id = "0".repeat(32);
        let ended = shown(decide(true, "op"), State::Denied, 2_000);
        assert_eq!(
            (ended.len(), ended.ends_with(" is denied")),
            (id.len() + 18, true)
        );
        assert!(shown(decide(true, "op"), State::Pending, u64::MAX).ends_with(" is expired"));
        assert!(shown(decide(false, "local"), State::Denied, 0).contains("by the one that asks"));
    }

    #[test]
    fn an_open_request_is_joined_and_a_denial_bars_for_its_cool_off() {
        let config = ApprovalConfig::default();
        let (late, cool) = (1_000 + 15 * 60_000, 1_000 + 5 * 60_000);
        for state in State::ALL.iter().copied() {
            let answers = |now| answering(&request(state), now, &config);
            let is_open = [State::Pending, State::Approved].contains(&state);
            assert_eq!(
                answers(cool - 1),
                is_open || state == State::Denied,
                "{state}"
            );
            assert_eq!(answers(late - 1), is_open, "{state}");
            assert!(!answers(late), "{state}");
        }
    }
}
