//! The figures as dots, a row for each peer, as SVG documents that need nothing else.

use std::fmt::Write;

use crate::figures::{Figures, PeerFigures};
use crate::report::rows::cell;

/// What is drawn of a peer in one panel.
struct Series {
    name: &'static str,
    colour: &'static str,
    of: fn(&PeerFigures) -> Option<f64>,
}

struct Panel {
    title: &'static str,
    /// By powers of ten; otherwise from nought.
    log: bool,
    series: &'static [Series],
}

const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";

const SPEED: &[Panel] = &[
    Panel {
        title: "Calls per second at 32 callers, as a share of direct in per cent",
        log: true,
        series: &[
            Series {
                name: "uncached",
                colour: BLUE,
                of: |peer| Some(cell(peer, 32, false)?.summary.share_of_direct * 100.0),
            },
            Series {
                name: "repeated calls",
                colour: ORANGE,
                of: |peer| Some(cell(peer, 32, true)?.summary.share_of_direct * 100.0),
            },
        ],
    },
    Panel {
        title: "CPU time of the peer per call at 32 callers, in µs",
        log: true,
        series: &[
            Series {
                name: "uncached",
                colour: BLUE,
                of: |peer| cell(peer, 32, false)?.summary.cpu_us_per_call,
            },
            Series {
                name: "repeated calls",
                colour: ORANGE,
                of: |peer| cell(peer, 32, true)?.summary.cpu_us_per_call,
            },
        ],
    },
    Panel {
        title: "Added at p50 with one caller, uncached, in ms",
        log: true,
        series: &[Series {
            name: "uncached",
            colour: BLUE,
            of: |peer| {
                let speed = cell(peer, 1, false)?;
                (peer.name != "direct").then_some(speed.summary.added_p50_ms)
            },
        }],
    },
];

const CORRECTNESS: &[Panel] = &[
    Panel {
        title: "Writes run again after a lost reply, per 100 intended",
        log: false,
        series: &[Series {
            name: "run again",
            colour: ORANGE,
            of: |peer| {
                ratio(
                    peer.lost
                        .iter()
                        .filter(|lost| lost.writes)
                        .map(|lost| (lost.extra, lost.intended)),
                )
            },
        }],
    },
    Panel {
        title: "Reads that are stale, and writes that are swallowed, per 100",
        log: false,
        series: &[
            Series {
                name: "stale",
                colour: BLUE,
                of: |peer| {
                    ratio(
                        peer.memory
                            .iter()
                            .map(|memory| (memory.stale, memory.reads)),
                    )
                },
            },
            Series {
                name: "swallowed",
                colour: ORANGE,
                of: |peer| {
                    ratio(
                        peer.memory
                            .iter()
                            .map(|memory| (memory.swallowed, memory.writes)),
                    )
                },
            },
        ],
    },
    Panel {
        title: "Executions of 64 identical reads at once",
        log: true,
        series: &[Series {
            name: "executions",
            colour: BLUE,
            of: |peer| Some(peer.stampede.as_ref()?.executed as f64),
        }],
    },
];

fn ratio(parts: impl Iterator<Item = (u64, u64)>) -> Option<f64> {
    let (part, whole) = parts.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    (whole > 0).then(|| part as f64 / whole as f64 * 100.0)
}

/// Each picture and the name of its file.
pub(crate) fn all(figures: &Figures) -> Vec<(&'static str, String)> {
    vec![
        ("correctness.svg", draw(CORRECTNESS, &figures.peers)),
        ("speed.svg", draw(SPEED, &figures.peers)),
    ]
}

/// What a picture says to those who cannot see it.
pub(crate) fn alt(name: &str) -> &'static str {
    match name {
        "correctness.svg" => "The correctness rows of the table as dots, a row for each peer",
        _ => "The speed rows of the table as dots, a row for each peer",
    }
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 720.0;
const ROW: f64 = 24.0;

fn draw(panels: &[Panel], peers: &[PeerFigures]) -> String {
    let mut body = String::new();
    let mut top = 0.0;
    for panel in panels {
        let shown: Vec<_> = peers
            .iter()
            .filter(|peer| {
                panel
                    .series
                    .iter()
                    .any(|series| (series.of)(peer).is_some())
            })
            .collect();
        if !shown.is_empty() {
            // writing to a string cannot fail
            let _ = panel.draw(&mut body, &shown, top + 40.0);
            top += 95.0 + ROW * shown.len() as f64;
        }
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{top}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

impl Panel {
    fn draw(&self, svg: &mut String, peers: &[&PeerFigures], top: f64) -> std::fmt::Result {
        let values: Vec<f64> = peers
            .iter()
            .flat_map(|peer| self.series.iter().filter_map(|series| (series.of)(peer)))
            .collect();
        let axis = Axis::over(&values, self.log);
        let bottom = top + ROW * peers.len() as f64;
        writeln!(
            svg,
            "<text x=\"12\" y=\"{:.0}\" font-size=\"15\">{}</text>",
            top - 12.0,
            self.title
        )?;
        for (at, words) in axis.ticks() {
            let x = axis.x(at);
            writeln!(
                svg,
                "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#ddd\"/>\
                 <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666\">{words}</text>",
                bottom + 18.0
            )?;
        }
        for (place, peer) in peers.iter().enumerate() {
            let y = top + ROW * (place as f64 + 0.5);
            let name = peer.name.replace('&', "&amp;").replace('<', "&lt;");
            writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.0}H{RIGHT}\" stroke=\"#eee\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{name}</text>",
                LEFT - 12.0,
                y + 4.0
            )?;
            for series in self.series {
                if let Some(value) = (series.of)(peer) {
                    let x = axis.x(value);
                    let colour = series.colour;
                    writeln!(
                        svg,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.0}\" r=\"5\" fill=\"{colour}\"/>"
                    )?;
                }
            }
        }
        for (place, series) in self.series.iter().enumerate() {
            let y = top + ROW * (place as f64 + 0.5);
            writeln!(
                svg,
                "<circle cx=\"{:.0}\" cy=\"{y:.0}\" r=\"5\" fill=\"{}\"/>\
                 <text x=\"{:.0}\" y=\"{:.0}\">{}</text>",
                RIGHT + 26.0,
                series.colour,
                RIGHT + 38.0,
                y + 4.0,
                series.name
            )?;
        }
        Ok(())
    }
}

/// From a value to its place.
struct Axis {
    log: bool,
    from: f64,
    to: f64,
}

/// What is less has no place of its own on an axis by powers of ten: it stands at its end.
const LEAST: f64 = 1e-3;

impl Axis {
    fn over(values: &[f64], log: bool) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        if !log {
            let to = if most > 0.0 { most.max(10.0) } else { 10.0 };
            return Self { log, from: 0.0, to };
        }
        let least = values
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
            .max(LEAST);
        let from = least.log10().floor();
        let to = most.max(LEAST).log10().ceil().max(from + 1.0);
        Self { log, from, to }
    }

    fn x(&self, value: f64) -> f64 {
        let at = if self.log {
            value.max(LEAST).log10()
        } else {
            value
        };
        let part = ((at - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        LEFT + (RIGHT - LEFT) * part
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if self.log {
            let powers = self.from as i32..=self.to as i32;
            return powers
                .map(|power| 10_f64.powi(power))
                .map(|at| (at, at.to_string()))
                .collect();
        }
        let step = if self.to > 50.0 { 20.0 } else { 5.0 };
        let count = (self.to / step).floor() as u32;
        (0..=count)
            .map(|place| f64::from(place) * step)
            .map(|at| (at, at.to_string()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Stampede;

    #[test]
    fn a_power_of_ten_is_as_long_as_the_next() {
        let axis = Axis::over(&[0.5, 90.0], true);
        let ticks = axis.ticks();
        let places: Vec<f64> = ticks.iter().map(|(at, _)| axis.x(*at)).collect();
        assert_eq!(ticks[0].1, "0.1");
        assert_eq!((places[0], places[3]), (LEFT, RIGHT));
        assert!((places[1] - places[0] - (places[2] - places[1])).abs() < 1e-9);
        assert_eq!(axis.x(-1.0), LEFT);
    }

    #[test]
    fn peers_without_a_value_get_no_row() {
        let with = PeerFigures {
            name: "a<b".to_owned(),
            stampede: Some(Stampede {
                callers: 64,
                executed: 1,
                errors: 0,
                slowest_seconds: 0.3,
            }),
            ..PeerFigures::default()
        };
        let without = PeerFigures {
            name: "none".to_owned(),
            ..PeerFigures::default()
        };
        let svg = draw(CORRECTNESS, &[with, without]);
        assert!(svg.contains(">a&lt;b<") && !svg.contains("none"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
    }
}
