//! The rules with what they keep, and the checks of arguments.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use callward_core::redact::credentials;
use callward_core::refine::ArgumentPath;
use callward_core::trail::{Decision, Stage, Verdict};
use callward_core::{
    ArgumentsRead, Delivery, ErrorKind, FingerprintKey, InvalidConfig, ToolCall, ToolError, When,
};

use crate::dry_runs::{self, DryRuns};
use crate::executions::{Execution, Executions, Limit};
use crate::{Handling, Rule, Screen, Size};

/// Rules, dry runs and counts, which the two layers share. Clones are the same.
#[derive(Clone)]
pub struct Guardrails(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    rules: Vec<Rule>,
    pub(crate) screen: Option<Arc<dyn Screen>>,
    secret: FingerprintKey,
    pub(crate) dry_runs: DryRuns,
    executions: Arc<Executions>,
}

impl fmt::Debug for Guardrails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guardrails").field(&self.0.rules).finish()
    }
}

/// A call that may go on.
pub(crate) struct Checked {
    pub(crate) call: ToolCall,
    /// What it permits, if it is a dry run that succeeds.
    pub(crate) permits: Vec<u128>,
    /// Whether the service is asked first.
    pub(crate) asks: bool,
}

impl Checked {
    /// Takes a call as it is.
    pub(crate) const fn unchanged(call: ToolCall) -> Self {
        Self {
            call,
            permits: Vec::new(),
            asks: false,
        }
    }
}

impl Guardrails {
    /// Takes rules, and the service that those with [`webhook`](Rule::webhook) ask.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the first invalid setting.
    pub fn new(rules: Vec<Rule>, screen: Option<Arc<dyn Screen>>) -> Result<Self, InvalidConfig> {
        for rule in &rules {
            rule.validate()?;
            if rule.webhook && screen.is_none() {
                return Err(InvalidConfig::new("webhook", "needs a service to ask"));
            }
        }
        // std seeds each state from the system's random source
        let random = || RandomState::new().hash_one(0_u8);
        Ok(Self(Arc::new(Inner {
            rules,
            screen,
            secret: FingerprintKey::new(random(), random()),
            dry_runs: DryRuns::default(),
            executions: Arc::default(),
        })))
    }

    /// Returns the rules that concern a call and what each checks, in one decision for each.
    #[must_use]
    pub fn decisions(&self, call: &ToolCall) -> Vec<Decision> {
        let decision = |(number, rule)| {
            let why = format!("rule {number}: {rule}");
            Decision::new(Stage::Guardrail, Verdict::Checked, why)
        };
        self.concerning(call).map(decision).collect()
    }

    /// Returns the rules that concern a call, with their numbers from 1.
    pub(crate) fn concerning(&self, call: &ToolCall) -> impl Iterator<Item = (usize, &Rule)> {
        let rules = (1..).zip(&self.0.rules);
        rules.filter(|(_, rule)| rule.concerns(call))
    }

    /// Checks the arguments of a call, and rewrites them if a rule says so.
    pub(crate) fn check(&self, mut call: ToolCall) -> Result<Checked, ToolError> {
        let (mut permits, mut asks) = (Vec::new(), false);
        let original = call.clone();
        for (number, rule) in self.concerning(&original) {
            let Some(handling) = rule.credentials.arguments else {
                continue;
            };
            let text = String::from_utf8_lossy(call.arguments());
            if let Some(found) = credentials(&text) {
                if handling == Handling::Refuse {
                    let what = found.first;
                    let why = format!("the arguments hold what looks like {what}: leave it out");
                    return Err(refused(&call, ErrorKind::Unauthorized, number, &why));
                }
                call = call.with_arguments(found.text);
            }
        }
        // the arguments of the call that made a task are not known any more
        let is_call = !call.tool().definition.method.is_of_task();
        for (number, rule) in self.concerning(&call) {
            let refused = |kind, why: &str| refused(&call, kind, number, why);
            let size = call.arguments().len();
            if let Some(Size(max)) = rule.max_bytes.arguments
                && size as u64 > max
            {
                let why = format!("the arguments have {size} bytes, at most {max} are allowed");
                return Err(refused(ErrorKind::InvalidCall, &why));
            }
            asks |= rule.webhook;
            if !is_call {
                continue;
            }
            let read = ArgumentsRead::new(call.arguments());
            if let Some(why) = listed(rule, &read) {
                return Err(refused(ErrorKind::Unauthorized, &why));
            }
            if let Some(argument) = &rule.dry_run_argument
                && dry_runs::may_take(call.tool(), argument)
            {
                let key = dry_runs::key(&self.0.secret, &call, argument).ok_or_else(|| {
                    let why = "two parsers may read the arguments differently: send JSON with \
                               each member once";
                    refused(ErrorKind::InvalidCall, why)
                })?;
                let path = ArgumentPath::new(argument).ok();
                if path.and_then(|path| path.find(call.arguments())) == Some("true") {
                    permits.push(key);
                } else if !self.0.dry_runs.permit(key) {
                    let why = format!(
                        "send it with `{argument}`: true first, with else the same arguments, and \
                         look at the result; within 10 min of that it runs without"
                    );
                    return Err(refused(ErrorKind::InvalidCall, &why));
                }
            }
        }
        Ok(Checked {
            call,
            permits,
            asks,
        })
    }

    /// Counts a call against the limits of executions; `None` if it has none.
    pub(crate) fn admit(&self, call: &ToolCall) -> Result<Option<Execution>, ToolError> {
        // it is the runtime's own, or part of a call that was counted
        if call.is_background || call.tool().definition.method.is_of_task() {
            return Ok(None);
        }
        let mut limits = Vec::new();
        for (number, rule) in self.concerning(call) {
            limits.extend(Limit::of(&self.0.secret, number, rule.max_calls, call));
        }
        if limits.is_empty() {
            return Ok(None);
        }
        let admitted = self.0.executions.admit(&limits);
        admitted.map(Some).map_err(|reached| {
            let wait = reached.wait;
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let (max, whose) = (reached.max, reached.whose);
            let why = format!("{max} such calls of {whose} ran; the next is free in {seconds} s");
            let error = refused(call, ErrorKind::RateLimited, reached.rule, &why);
            error.with_retry_after(wait)
        })
    }
}

/// Returns why a list refuses the arguments, if one does.
fn listed(rule: &Rule, read: &ArgumentsRead<'_>) -> Option<String> {
    let fails = |when: &When, wanted: bool, text: &str| match when.holds(read) {
        Some(holds) if holds == wanted => None,
        Some(_) => Some(format!("{text} {when}")),
        None => Some(format!(
            "{text} {when}, and these may be read in more than one way"
        )),
    };
    let denied = rule.deny.as_ref();
    let denied = denied.and_then(|when| fails(when, false, "calls are denied where"));
    denied.or_else(|| fails(rule.allow.as_ref()?, true, "calls are allowed only where"))
}

/// Writes into the record of a call that a rule refuses it.
pub(crate) fn refused(call: &ToolCall, kind: ErrorKind, rule: usize, why: &str) -> ToolError {
    let text = format!(
        "guardrail {rule} refuses the call of `{}`: {why}",
        call.tool().name()
    );
    call.decided(|| Decision::new(Stage::Guardrail, Verdict::Refused, text.clone()));
    ToolError::new(kind, Delivery::NotSent, text)
}
