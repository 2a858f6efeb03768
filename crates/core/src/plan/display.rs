//! Plans as text.

use std::fmt;
use std::time::Duration;

use crate::{CacheRule, CallPlan, ConfirmRule, Lifetime, Limits, RetryRule, RouteRule};

impl fmt::Display for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (safety, reason) = (self.effect.safety_level(), &self.reason);
        writeln!(f, "effect   {} ({safety}): {reason}", self.effect)?;
        writeln!(f, "route    {}\ncache    {}", self.route, self.cache)?;
        writeln!(f, "retry    {}\nconfirm  {}", self.retry, self.confirm)?;
        write!(f, "limits   {}\nrecorded {}", self.limits, self.audit)
    }
}

impl CallPlan {
    /// Writes the plan in one line, for spans and logs, without the reason.
    pub fn in_line(&self) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            write!(
                f,
                "effect: {}; route: {}; cache: {}; retry: {}; confirm: {}; limits: {}",
                self.effect, self.route, self.cache, self.retry, self.confirm, self.limits
            )
        })
    }
}

impl fmt::Display for RouteRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min_weight {
            Some(weight) => write!(f, "only healthy servers of weight {weight} or more")?,
            None => write!(f, "any healthy server")?,
        }
        for category in &self.prefer {
            write!(f, ", category `{category}` first")?;
        }
        let mut lead = ", tagged";
        for tag in self.tags.iter() {
            write!(f, "{lead} {tag:?}")?;
            lead = ",";
        }
        if let Some(cost) = self.cost {
            write!(f, ", costs {cost}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CacheRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bypass => write!(f, "never: the result must be fresh"),
            Self::Invalidate => write!(f, "never; drops what the call may have changed"),
            Self::KeepOwn { ttl, lifetime } => write!(
                f,
                "drops what the call may have changed, then keeps its own result {}",
                kept_for(*ttl, *lifetime)
            ),
            Self::Store { ttl, lifetime } => write!(f, "kept {}", kept_for(*ttl, *lifetime)),
        }
    }
}

fn kept_for(ttl: Duration, lifetime: Lifetime) -> String {
    let seconds = ttl.as_secs_f64();
    match lifetime {
        Lifetime::Stated | Lifetime::Fixed => format!("{seconds} s"),
        Lifetime::Learned(_) => format!("as long as evidence allows, {seconds} s at most"),
    }
}

impl fmt::Display for RetryRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::OnlyUnsent => "only when it certainly was not sent",
            Self::Safe => "yes, when the failure may pass",
        })
    }
}

impl fmt::Display for ConfirmRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "yes: a human agrees before each call",
            Self::Skip => "no",
        })
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "attempt timeout {} s, first backoff {} ms",
            self.attempt_timeout.as_secs_f64(),
            self.first_backoff.as_millis()
        )?;
        if let Some(rate) = self.calls_per_minute {
            write!(f, ", {rate} calls a minute")?;
        }
        if self.restricted {
            write!(f, ", results never shared")?;
        }
        Ok(())
    }
}
