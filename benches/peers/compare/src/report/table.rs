//! The table, what was compared in it, and where a peer is better.

use std::fmt::Write;

use crate::figures::{Figures, PeerFigures};
use crate::report::changed;
use crate::report::rows::{Better, GROUPS, Row};

const DIRECT: &str = "direct";
const OURS: &str = "Callward";
const OURS_CACHED: &str = "Callward fixed";

pub(crate) fn render(figures: &Figures) -> String {
    let mut page = String::new();
    // writing to a string cannot fail
    let _ = head(&mut page, figures)
        .and_then(|()| table(&mut page, figures))
        .and_then(|()| better(&mut page, figures))
        .and_then(|()| changed::section(&mut page, figures))
        .and_then(|()| setups(&mut page, figures));
    page
}

fn head(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let of = |name: &str| figures.machine.get(name).map_or("unknown", String::as_str);
    writeln!(
        page,
        "Measured {} on {} cores of {}, {} memory, {}; {}, Node {}. The machine's load before it: {}.",
        of("date"),
        of("cores"),
        of("cpu"),
        of("memory"),
        of("system"),
        of("rustc"),
        of("node"),
        of("load average"),
    )?;
    let minutes = figures.seconds / 60.0;
    write!(page, "The measuring took {minutes:.0} minutes")?;
    if figures.before_seconds > 0 {
        let before = figures.before_seconds as f64 / 60.0;
        write!(page, ", after {before:.0} of building and installing")?;
    }
    if figures.quick {
        write!(page, ", with `--quick`: few calls and short rounds")?;
    }
    writeln!(page, ".\n")
}

fn table(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let peers = &figures.peers;
    write!(page, "| |")?;
    for peer in peers {
        write!(page, " {} |", peer.name)?;
    }
    writeln!(page, "\n| --- |{}", " ---: |".repeat(peers.len()))?;
    write!(page, "| version |")?;
    for peer in peers {
        write!(page, " {} |", peer.version)?;
    }
    write!(page, "\n| configuration |")?;
    for peer in peers {
        write!(page, " {} |", peer.configuration)?;
    }
    writeln!(page)?;
    for group in GROUPS {
        writeln!(page, "| **{}** |", group.name)?;
        for row in group.rows {
            self::row(page, row, peers)?;
        }
    }
    writeln!(
        page,
        "\n**Bold**: the best of a row, *direct* left out. –: not measured, or there is nothing of the kind."
    )
}

fn row(page: &mut String, row: &Row, peers: &[PeerFigures]) -> std::fmt::Result {
    let best = best(row, peers.iter().filter(|peer| peer.name != DIRECT));
    write!(page, "| {} |", row.name)?;
    for peer in peers {
        match (row.cell)(peer) {
            None => write!(page, " – |")?,
            Some((value, text)) if Some(value) == best && peer.name != DIRECT => {
                write!(page, " **{text}** |")?;
            }
            Some((_, text)) => write!(page, " {text} |")?,
        }
    }
    writeln!(page)
}

/// The best value of a row among peers, where one end is better than the other.
fn best<'a>(row: &Row, peers: impl Iterator<Item = &'a PeerFigures>) -> Option<f64> {
    // who is dead, or never came back, is best at nothing
    let values = peers
        .filter_map(row.cell)
        .map(|(value, _)| value)
        .filter(|value| value.is_finite());
    match row.better {
        Better::Low => values.min_by(f64::total_cmp),
        Better::High => values.max_by(f64::total_cmp),
        Better::Neither => None,
    }
}

/// Every row in which another peer is better than our defaults, and what our cached configuration
/// has there.
fn better(page: &mut String, figures: &Figures) -> std::fmt::Result {
    let named = |name| figures.peers.iter().find(move |peer| peer.name == name);
    let Some(ours) = named(OURS) else {
        return Ok(());
    };
    let others = || {
        let not_others = [DIRECT, OURS, OURS_CACHED];
        let peers = figures.peers.iter();
        peers.filter(move |peer| !not_others.contains(&peer.name.as_str()))
    };
    let mut lines = String::new();
    for (group, row) in GROUPS
        .iter()
        .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
    {
        let Some(((value, text), best)) = (row.cell)(ours).zip(best(row, others())) else {
            continue;
        };
        let is_better = match row.better {
            Better::Low => best < value,
            Better::High => best > value,
            Better::Neither => false,
        };
        if !is_better {
            continue;
        }
        let cached = named(OURS_CACHED)
            .and_then(row.cell)
            .map_or_else(String::new, |(_, text)| format!(", {OURS_CACHED} {text}"));
        for (peer, (value, theirs)) in others().filter_map(|peer| Some((peer, (row.cell)(peer)?))) {
            if value == best {
                let (group, row) = (group.name, row.name);
                writeln!(
                    lines,
                    "- {group}: {row}: {} {theirs}, Callward {text}{cached}",
                    peer.name
                )?;
            }
        }
    }
    if lines.is_empty() {
        return writeln!(page, "\nIn no row is another peer better than Callward.");
    }
    writeln!(
        page,
        "\nWhere another peer is better than Callward:\n\n{}",
        lines.trim_end()
    )
}

fn setups(page: &mut String, figures: &Figures) -> std::fmt::Result {
    writeln!(page, "\n### How each is set up\n")?;
    writeln!(page, "| name | setup |")?;
    writeln!(page, "| --- | --- |")?;
    for peer in &figures.peers {
        writeln!(page, "| {} | {} |", peer.name, peer.setup)?;
    }
    let failures: Vec<_> = figures
        .peers
        .iter()
        .flat_map(|peer| {
            peer.failures
                .iter()
                .map(move |failure| (&peer.name, failure))
        })
        .collect();
    if failures.is_empty() {
        return Ok(());
    }
    writeln!(page, "\nWhat could not be measured, and why:\n")?;
    for (name, failure) in failures {
        writeln!(page, "- {name}: {}", one_line(failure))?;
    }
    Ok(())
}

/// Of a long report, the beginning, in one line.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Memory;

    fn peer(name: &str, stale: u64, start: f64) -> PeerFigures {
        PeerFigures {
            name: name.to_owned(),
            version: "1".to_owned(),
            memory: Some(Memory {
                reads: 10,
                stale,
                ..Memory::default()
            }),
            start_seconds: Some(start),
            ..PeerFigures::default()
        }
    }

    fn page() -> String {
        render(&Figures {
            peers: vec![
                peer(DIRECT, 0, 0.0),
                peer(OURS, 0, 0.5),
                peer("other", 5, 0.25),
            ],
            ..Figures::default()
        })
    }

    #[test]
    fn the_best_is_bold_and_direct_is_not_among_them() {
        let page = page();
        assert!(
            page.contains("| reads that were stale | 0 | **0** | 50 |"),
            "{page}"
        );
        assert!(
            page.contains("| start to first listing, s | 0.00 | 0.50 | **0.25** |"),
            "{page}"
        );
    }

    #[test]
    fn where_another_is_better_it_is_said() {
        let page = page();
        assert!(
            page.contains("- Process: start to first listing, s: other 0.25, Callward 0.50\n"),
            "{page}"
        );
        assert!(!page.contains("- After a write"), "{page}");
    }

    #[test]
    fn our_cached_configuration_hides_no_row_in_which_the_default_is_worse() {
        let page = render(&Figures {
            peers: vec![
                peer(OURS, 0, 0.5),
                peer(OURS_CACHED, 0, 0.1),
                peer("other", 5, 0.25),
            ],
            ..Figures::default()
        });
        let line = "- Process: start to first listing, s: other 0.25, Callward 0.50, Callward fixed 0.10\n";
        assert!(page.contains(line), "{page}");
        assert!(
            page.contains("| start to first listing, s | 0.50 | **0.10** | 0.25 |"),
            "{page}"
        );
    }

    #[test]
    fn what_failed_is_told_in_one_line() {
        let mut failed = peer("other", 0, 1.0);
        failed
            .failures
            .push("not installed:\n  no such release".to_owned());
        let page = render(&Figures {
            peers: vec![failed],
            ..Figures::default()
        });
        assert!(
            page.contains("- other: not installed: no such release\n"),
            "{page}"
        );
    }
}
