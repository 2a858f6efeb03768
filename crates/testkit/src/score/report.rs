//! Figures for people and for programs.

use std::fmt;

use callward_core::Field;
use serde_json::{Value, json};

use super::figures::{Counts, HINTS, OfServer, Score, share};
use super::interval::Interval;

/// Shows a score without mistakes, but for those that do harm.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report(f, 0)
    }
}

impl Score {
    /// Writes the figures as text, with the worst `mistakes`. Those that do harm are always shown.
    ///
    /// # Errors
    ///
    /// If the text cannot be written.
    pub fn report(&self, f: &mut impl fmt::Write, mistakes: usize) -> fmt::Result {
        self.hints(f)?;
        self.mistakes(f, mistakes)?;
        writeln!(f, "\n{:32} F1 of each hint", "server")?;
        for (server, figures) in &self.servers {
            write!(f, "{server:32}")?;
            for hint in HINTS {
                let f1 = figures.hints.get(&hint).and_then(Counts::f1);
                write!(f, " {:>5}", figure(f1))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn hints(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let intervals = self.intervals();
        let servers = self.servers.len();
        writeln!(f, "{} tools of {servers} servers", self.tools)?;
        writeln!(
            f,
            "\n{:16} {:>6} {:>9} {:>6} {:>6} {:14} {:>6} {:14}",
            "hint", "labels", "precision", "recall", "F1", " (90 %)", "macro", " (90 %)"
        )?;
        for hint in HINTS {
            let counts = self.total.get(&hint).copied().unwrap_or_default();
            writeln!(
                f,
                "{:16} {:>6} {:>9} {:>6} {:>6} {:14} {:>6} {}",
                hint,
                counts.all(),
                figure(counts.precision()),
                figure(counts.recall()),
                figure(counts.f1()),
                span(intervals.f1.get(&hint)),
                figure(self.macro_f1(hint)),
                span(intervals.macro_f1.get(&hint)),
            )?;
        }
        writeln!(
            f,
            "(90 %): between these in nine of ten draws of as many servers from these"
        )?;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let unsafe_share = self.unsafe_share().map_or_else(|| "-".to_owned(), percent);
        let likely = if self.harmful.is_empty() {
            // Draws of nothing give nothing. Of a share above three in this many, one would have
            // shown in nineteen cases of twenty.
            let bound = share(3, self.writes);
            bound.map(|bound| format!("; this many show no less than {}", percent(bound)))
        } else {
            let between = intervals.unsafe_share;
            between.map(|Interval { low, high, .. }| {
                format!(
                    "; {} to {} in nine of ten draws",
                    percent(low),
                    percent(high)
                )
            })
        };
        writeln!(
            f,
            "\nunsafe: {} of {} writes would be called read-only ({unsafe_share}{})",
            self.harmful.len(),
            self.writes,
            likely.unwrap_or_default(),
        )
    }

    fn mistakes(&self, f: &mut impl fmt::Write, shown: usize) -> fmt::Result {
        let harmful = self.harmful.len();
        let worst = self.worst();
        for mistake in worst.iter().take(harmful) {
            writeln!(f, "  {} {}: {}", mistake.server, mistake.tool, mistake.why)?;
        }
        let rest = worst.len().saturating_sub(harmful);
        let shown = shown.saturating_sub(harmful).min(rest);
        if shown > 0 {
            writeln!(f, "\n{shown} of {rest} other mistakes, the worst first")?;
        }
        for mistake in worst.iter().skip(harmful).take(shown) {
            writeln!(
                f,
                "  {} {}: {} {}, declared {}: {}",
                mistake.server,
                mistake.tool,
                mistake.hint,
                mistake
                    .concluded
                    .map_or_else(|| "open".to_owned(), |hint| hint.to_string()),
                mistake.declared,
                mistake.why,
            )?;
        }
        Ok(())
    }
}

fn figure(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.3}"))
}

fn span(interval: Option<&Interval>) -> String {
    interval.map_or_else(String::new, |Interval { low, high, .. }| {
        format!("({low:.3}-{high:.3})")
    })
}

impl Score {
    /// Returns all figures, and each mistake, the worst first.
    pub fn to_json(&self) -> Value {
        let intervals = self.intervals();
        let pair =
            |interval: Option<&Interval>| interval.map(|between| [between.low, between.high]);
        let row = |hint: Field, counts: &Counts| {
            json!({
                "hint": hint,
                "counts": counts,
                "precision": counts.precision(),
                "recall": counts.recall(),
                "f1": counts.f1(),
            })
        };
        let total: Vec<Value> = self
            .total
            .iter()
            .map(|(hint, counts)| {
                let mut row = row(*hint, counts);
                row["macroF1"] = json!(self.macro_f1(*hint));
                row["f1Interval"] = json!(pair(intervals.f1.get(hint)));
                row["macroF1Interval"] = json!(pair(intervals.macro_f1.get(hint)));
                row
            })
            .collect();
        let of_server = |figures: &OfServer| -> Value {
            let rows = figures.hints.iter();
            rows.map(|(hint, counts)| row(*hint, counts)).collect()
        };
        let servers: serde_json::Map<String, Value> = self
            .servers
            .iter()
            .map(|(server, figures)| (server.clone(), of_server(figures)))
            .collect();
        json!({
            "tools": self.tools,
            "hints": total,
            "servers": servers,
            "unsafe": {
                "writes": self.writes,
                "share": self.unsafe_share(),
                "interval": pair(intervals.unsafe_share.as_ref()),
                "tools": self.harmful,
            },
            "mistakes": self.worst(),
        })
    }
}
