//! Which server gets a call, and when one is left out.

use callward::core::InvalidConfig;
use callward::router::affinity::AffinityConfig;
use callward::router::{HealthConfig, PingConfig, RouterConfig};

use super::super::file::Server;
use super::super::router::{Affinity, Health, Ping, Router};
use super::Faults;

impl Faults<'_, '_> {
    pub(super) fn router(&mut self, written: &Router) -> RouterConfig {
        let mut config = RouterConfig::default()
            .with_strategy(written.strategy)
            .with_affinity(self.affinity(&written.affinity))
            .with_health(self.health(&written.health));
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

    fn health(&mut self, written: &Health) -> HealthConfig {
        let plain = HealthConfig::default();
        let outlier = (written.outlier > 0).then_some(written.outlier);
        let first = written.eject_time;
        // where only the first is given and is longer than the usual most, it is the most too
        let most = written
            .max_eject_time
            .unwrap_or_else(|| plain.max_eject_time.max(first));
        self.expect(
            (1..=100).contains(&written.max_ejected),
            &["router", "health", "max_ejected"],
            "expected 1 to 100 percent; `faults = 0` and `outlier = 0` eject nobody",
        );
        for alone in [
            plain.with_outlier(outlier),
            plain.with_window(written.window),
            plain.with_min_calls(written.min_calls),
            plain.with_min_servers(written.min_servers),
            plain.with_max_ejected(written.max_ejected),
            plain.with_eject_time(first).with_max_eject_time(most),
            plain.with_slow_start(written.slow_start),
            plain.with_slow_start_floor(written.slow_start_floor),
            plain.with_panic(written.panic),
        ] {
            self.of_health(alone.validate());
        }
        let ping = self.ping(&written.ping);
        plain
            .with_faults(written.faults)
            .with_outlier(outlier)
            .with_window(written.window)
            .with_min_calls(written.min_calls)
            .with_min_servers(written.min_servers)
            .with_max_ejected(written.max_ejected)
            .with_eject_time(first)
            .with_max_eject_time(most)
            .with_slow_start(written.slow_start)
            .with_slow_start_floor(written.slow_start_floor)
            .with_panic(written.panic)
            .with_ping(written.ping.enabled.then_some(ping))
    }

    /// What is written is checked also where servers are not asked.
    fn ping(&mut self, written: &Ping) -> PingConfig {
        let plain = PingConfig::default();
        for alone in [
            plain.with_interval(written.interval),
            plain.with_jitter(written.jitter),
            plain.with_timeout(written.timeout),
            plain.with_fall(written.fall),
            plain.with_rise(written.rise),
        ] {
            self.of_health(alone.validate());
        }
        plain
            .with_interval(written.interval)
            .with_jitter(written.jitter)
            .with_timeout(written.timeout)
            .with_fall(written.fall)
            .with_rise(written.rise)
    }

    /// Reports what health says of its settings: it names them with all that they stand under, such as
    /// `health.ping.fall`.
    fn of_health(&mut self, checked: Result<(), InvalidConfig>) {
        let Err(fault) = checked else { return };
        let path: Vec<&str> = ["router"]
            .into_iter()
            .chain(fault.field().split('.'))
            .collect();
        if !self.has_fault_at(&path) {
            self.at(&path, fault.reason());
        }
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
