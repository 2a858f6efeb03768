//! How often, how many at once and how long.

use std::time::Duration;

use callward::limit::{Cap, RateLimitConfig, TimeoutConfig};
use callward::{LimitsConfig, ToolName};

use super::super::ServerLimits;
use super::super::file::{Hints, Server};
use super::super::limits::Limits;
use super::Faults;

/// The longest that anything may wait or run: no client waits a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Faults<'_, '_> {
    pub(super) fn limits(&mut self, written: &Limits) -> LimitsConfig {
        let section = ["limits"];
        let rate = RateLimitConfig::default();
        // one setting at a time, so that the first fault hides no other
        for alone in [
            rate.with_per_principal(written.per_principal),
            rate.with_burst(written.burst),
            rate.with_max_keys(written.max_keys),
        ] {
            self.layer(&section, alone.validate(), &[]);
        }
        self.expect(
            written.max_wait <= LONGEST,
            &["limits", "max_wait"],
            "expected at most a day",
        );
        self.expect(
            written
                .attempt_timeout
                .is_none_or(|time| !time.is_zero() && time <= LONGEST),
            &["limits", "attempt_timeout"],
            "expected more than zero, and at most a day",
        );
        let timeout = TimeoutConfig::default().with_cap(written.progress_cap);
        self.layer(&section, timeout.validate(), &[("cap", "progress_cap")]);
        self.expect(
            !matches!(written.progress_cap, Cap::At(cap) if cap > LONGEST),
            &["limits", "progress_cap"],
            "expected at most a day",
        );
        let mut limits = LimitsConfig::default();
        limits.rate = rate
            .with_tools(written.tools)
            .with_per_principal(written.per_principal)
            .with_burst(written.burst)
            .with_max_wait(written.max_wait)
            .with_max_keys(written.max_keys);
        limits.timeout = timeout;
        limits.attempt_timeout = written.attempt_timeout;
        limits
    }

    pub(super) fn server_limits(&mut self, key: &str, server: &Server) -> ServerLimits {
        let root = ["servers", key];
        let at = |name| ["servers", key, name];
        for (name, calls) in [
            ("max_concurrent", Some(server.max_concurrent)),
            ("max_concurrent_per_tool", server.max_concurrent_per_tool),
        ] {
            self.expect(calls != Some(0), &at(name), "expected 1 or more");
        }
        let rate = RateLimitConfig::default().with_in_all(server.calls_per_minute);
        self.layer(&root, rate.validate(), &[("in_all", "calls_per_minute")]);
        ServerLimits {
            max_concurrent: server.max_concurrent,
            max_waiting: server.max_waiting,
            shed: server.shed.into(),
            max_concurrent_per_tool: server.max_concurrent_per_tool,
            calls_per_minute: server.calls_per_minute,
        }
    }

    /// Takes out of a tool's table how many of its calls run at once.
    pub(super) fn places(&mut self, root: &[&str], written: &mut Hints) -> Option<usize> {
        const KEY: &str = "max_concurrent";
        let value = written.remove(KEY)?;
        let places = value.as_integer().and_then(|n| usize::try_from(n).ok());
        let places = places.filter(|places| *places >= 1);
        self.expect(
            places.is_some(),
            &[root, &[KEY]].concat(),
            "expected a whole number, 1 or more: calls of the tool at once",
        );
        places
    }

    /// Takes out of a tool's table what to check with what a call did whose answer never came.
    pub(super) fn reader(
        &mut self,
        root: &[&str],
        tool: &str,
        written: &mut Hints,
    ) -> Option<ToolName> {
        const KEY: &str = "verify_with";
        let value = written.remove(KEY)?;
        let path = [root, &[KEY]].concat();
        let Some(reader) = value.as_str() else {
            self.at(
                &path,
                "expected the name of a tool of the same set that only reads, as a string",
            );
            return None;
        };
        self.expect(
            reader != tool,
            &path,
            "expected another tool, one that only reads: to call this one again is no check",
        );
        self.ok(ToolName::new(reader), &path)
    }
}
