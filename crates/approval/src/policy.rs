//! Which calls ask.

use std::borrow::Cow;

use callward_core::{ConfirmRule, ToolCall};

/// Says which calls need approval. Asked once for each call, so it must be fast.
///
/// Any function of this form is one.
pub trait Policy: Send + Sync + 'static {
    /// Returns why a call needs approval, for the person who decides; `None` if it needs none.
    fn asks(&self, call: &ToolCall) -> Option<Cow<'static, str>>;
}

impl<F> Policy for F
where
    F: Fn(&ToolCall) -> Option<Cow<'static, str>> + Send + Sync + 'static,
{
    fn asks(&self, call: &ToolCall) -> Option<Cow<'static, str>> {
        self(call)
    }
}

/// The policy without another one: what the plan requires.
#[inline]
pub(crate) fn by_plan(call: &ToolCall) -> Option<Cow<'static, str>> {
    let plan = call.plan();
    match plan.confirm {
        ConfirmRule::Skip => None,
        _ => Some(Cow::Owned(format!(
            "the call is {}: {}",
            plan.effect, plan.reason
        ))),
    }
}
