//! Which server gets a call, and how servers are pinged.

use callward::PingConfig;
use callward::router::RouterConfig;
use callward::router::affinity::AffinityConfig;

use super::super::file::Server;
use super::super::router::{Affinity, Ping, Router};
use super::Faults;

impl Faults<'_, '_> {
    pub(super) fn router(&mut self, written: &Router) -> RouterConfig {
        let mut config = RouterConfig::default()
            .with_strategy(written.strategy)
            .with_affinity(self.affinity(&written.affinity))
            .with_min_available(written.min_available);
        self.expect(
            written.min_available <= 100,
            &["router", "min_available"],
            "expected 0 to 100 percent of a replica set",
        );
        if let Some(budget) = written.cost_budget {
            self.expect(
                budget.is_finite() && budget >= 0.0,
                &["router", "cost_budget"],
                "expected a number of 0 or more, in the units of `costHint`",
            );
            config = config.with_cost_budget(budget);
        }
        config
    }

    /// What is written is checked whatever the strategy.
    fn affinity(&mut self, written: &Affinity) -> AffinityConfig {
        let plain = AffinityConfig::default();
        // one setting at a time, so that the first fault hides no other
        for alone in [
            plain.clone().with_ttl(written.ttl),
            plain.clone().with_max_keys(written.max_keys),
            plain.clone().with_fallback(written.fallback),
        ] {
            self.layer(&["router", "affinity"], alone.validate(), &[]);
        }
        plain
            .with_by(written.by.clone())
            .with_ttl(written.ttl)
            .with_max_keys(written.max_keys)
            .with_without_session(written.without_session)
            .with_fallback(written.fallback)
    }

    /// What is written is checked even if servers are not pinged.
    pub(super) fn ping(&mut self, written: &Ping) -> Option<PingConfig> {
        let plain = PingConfig::default();
        for alone in [
            plain.with_interval(written.interval),
            plain.with_timeout(written.timeout),
        ] {
            self.layer(&["router", "ping"], alone.validate(), &[]);
        }
        let config = plain
            .with_interval(written.interval)
            .with_timeout(written.timeout);
        written.enabled.then_some(config)
    }

    /// What strategies and budgets look at, of one server.
    pub(super) fn server_traits(&mut self, key: &str, server: &Server) {
        let at = |name| ["servers", key, name];
        for (name, words) in [
            ("categories", &server.categories),
            ("capabilities", &server.capabilities),
        ] {
            for (number, word) in (1_usize..).zip(words) {
                let number = number.to_string();
                self.expect(
                    !word.trim().is_empty(),
                    &["servers", key, name, &number],
                    "expected a word: a blank one matches no tag",
                );
            }
        }
        self.expect(
            server
                .zone
                .as_ref()
                .is_none_or(|zone| !zone.trim().is_empty()),
            &at("zone"),
            "expected the name of a zone; leave the key out where there is none",
        );
        self.expect(
            server.cost_factor.is_finite() && server.cost_factor >= 0.0,
            &at("cost_factor"),
            "expected a number of 0 or more: what a call costs here for each unit of its tool's cost",
        );
    }
}
