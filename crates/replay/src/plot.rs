//! A comparison as a picture.

use std::fmt::{self, Write};

use crate::{Capacity, Comparison, KeyFigures, Policy};

/// The hit rate of each policy over the capacity, as an SVG document that needs nothing else.
///
/// The capacity goes by powers of ten. A capacity of 0 has no place on such an axis and is left
/// out.
///
/// ```
/// use callward_replay::{Capacity, Comparison, KeyTrace, Plot, Policy};
///
/// let trace = KeyTrace::from_keys(["a", "b", "a", "c", "a"]);
/// let capacities = [Capacity::Entries(1), Capacity::Entries(2)];
/// let found = Comparison::of(&trace, &capacities, &Policy::ALL, &|_, _| ())?;
/// let svg = Plot::new("requests.keys", &found).to_string();
/// assert!(svg.starts_with("<svg ") && svg.contains("s3-fifo"));
/// # Ok::<(), callward_replay::ReplayError>(())
/// ```
#[derive(Debug)]
pub struct Plot<'a> {
    title: &'a str,
    found: &'a Comparison,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
/// The frame around the lines; the legend stands to the right of it.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 450.0;

impl<'a> Plot<'a> {
    /// Draws a comparison under a title.
    #[must_use]
    pub fn new(title: &'a str, found: &'a Comparison) -> Self {
        Self { title, found }
    }
}

impl fmt::Display for Plot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = Axes::around(&self.found.figures);
        write!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
        )?;
        text(f, (LEFT, 28.0), "start", "font-size=\"16\"", self.title)?;
        axes.draw(f)?;
        let policies = self.found.policies();
        // the broad line lies below the thin ones, so that it hides none of them
        let mut order = policies.clone();
        order.sort_by_key(|policy| *policy != Policy::Callward);
        for policy in order {
            self.line(f, policy, Look::of(policy), &axes)?;
        }
        for (place, policy) in policies.into_iter().enumerate() {
            let look = Look::of(policy);
            #[expect(clippy::cast_precision_loss, reason = "a row of the legend")]
            let y = TOP + 12.0 + 22.0 * place as f64;
            let (from, to) = (RIGHT + 18.0, RIGHT + 46.0);
            writeln!(f, "<path d=\"M{from} {y}H{to}\" {look}/>")?;
            text(f, (to + 8.0, y + 4.0), "start", "", policy.as_str())?;
        }
        f.write_str("</svg>\n")
    }
}

impl Plot<'_> {
    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        policy: Policy,
        look: Look,
        axes: &Axes,
    ) -> fmt::Result {
        let figures = self.found.figures.iter();
        let mut points: Vec<_> = figures
            .filter(|found| found.policy == policy && found.capacity.amount() > 0)
            .collect();
        points.sort_by_key(|found| found.capacity);
        let mut path = String::new();
        for found in &points {
            let (x, y) = axes.place(found);
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{x:.1} {y:.1}")?;
        }
        if path.is_empty() {
            return Ok(());
        }
        writeln!(f, "<path d=\"{path}\" stroke-linejoin=\"round\" {look}/>")?;
        for found in points {
            let (x, y) = axes.place(found);
            let rate = found.hit_rate * 100.0;
            writeln!(
                f,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"><title>{policy}, \
                 {}: {rate:.2} %</title></circle>",
                look.colour, found.capacity
            )?;
        }
        Ok(())
    }
}

/// Which capacity is where, and which hit rate.
struct Axes {
    /// The ends of the capacity axis, as powers of ten.
    from: f64,
    to: f64,
    /// The hit rate at the top.
    highest: f64,
    in_bytes: bool,
}

impl Axes {
    fn around(figures: &[KeyFigures]) -> Self {
        let shown = || figures.iter().filter(|found| found.capacity.amount() > 0);
        let powers = || shown().map(|found| power(found.capacity));
        let (from, to) = (powers().reduce(f64::min), powers().reduce(f64::max));
        let (from, to) = (from.unwrap_or(0.0), to.unwrap_or(0.0));
        // a single capacity stands in the middle
        let margin = if to - from < 0.1 { 0.5 } else { 0.05 };
        let best = shown().map(|found| found.hit_rate).fold(0.0, f64::max);
        Self {
            from: from - margin,
            to: to + margin,
            // up to the next tenth, with a little air
            highest: ((best + 0.02) * 10.0).ceil().clamp(1.0, 10.0) / 10.0,
            in_bytes: shown().any(|found| matches!(found.capacity, Capacity::Bytes(_))),
        }
    }

    fn place(&self, found: &KeyFigures) -> (f64, f64) {
        (self.x(power(found.capacity)), self.y(found.hit_rate))
    }

    fn x(&self, power: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (power - self.from) / (self.to - self.from)
    }

    fn y(&self, hit_rate: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * hit_rate / self.highest
    }

    fn draw(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tenth in 0..=10_u8 {
            let rate = f64::from(tenth) / 10.0;
            if rate > self.highest + 1e-9 {
                break;
            }
            let y = self.y(rate);
            writeln!(f, "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e4e4e4\"/>")?;
            let label = format!("{} %", tenth * 10);
            text(f, (LEFT - 8.0, y + 4.0), "end", "", &label)?;
        }
        let wide = self.to - self.from > 2.5;
        let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        for decade in 0..20 {
            for step in steps {
                let capacity = step * 10_f64.powi(decade);
                self.tick(f, capacity)?;
            }
        }
        writeln!(
            f,
            "<path d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\" fill=\"none\" stroke=\"#888\"/>"
        )?;
        let unit = if self.in_bytes { "bytes" } else { "entries" };
        let middle = ((LEFT + RIGHT) / 2.0, BOTTOM + 48.0);
        text(f, middle, "middle", "", &format!("capacity, {unit}"))?;
        let (x, y) = (22.0, (TOP + BOTTOM) / 2.0);
        let turned = format!("transform=\"rotate(-90 {x} {y})\"");
        text(f, (x, y), "middle", &turned, "hit rate")
    }

    fn tick(&self, f: &mut fmt::Formatter<'_>, capacity: f64) -> fmt::Result {
        let power = capacity.log10();
        if power < self.from || power > self.to {
            return Ok(());
        }
        let x = self.x(power);
        writeln!(f, "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#e4e4e4\"/>")?;
        text(f, (x, BOTTOM + 20.0), "middle", "", &short(capacity))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn power(capacity: Capacity) -> f64 {
    (capacity.amount() as f64).log10()
}

/// Writes 20000 as `20k`.
fn short(number: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.into_iter().find(|(unit, _)| number >= *unit);
    let (unit, letter) = unit.unwrap_or((1.0, ""));
    format!("{}{letter}", (number / unit).round())
}

/// Writes a text into the picture. What is special in XML, or not allowed in it, is replaced.
fn text(
    f: &mut fmt::Formatter<'_>,
    (x, y): (f64, f64),
    anchor: &str,
    more: &str,
    words: &str,
) -> fmt::Result {
    write!(
        f,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>"
    )?;
    for letter in words.chars() {
        match letter {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            letter if letter.is_control() => f.write_char('\u{fffd}')?,
            letter => f.write_char(letter)?,
        }
    }
    f.write_str("</text>\n")
}

/// What a line looks like. The colours can be told apart by people who see few of them.
#[derive(Debug, Clone, Copy)]
struct Look {
    colour: &'static str,
    width: f64,
    dashes: &'static str,
}

impl Look {
    fn of(policy: Policy) -> Self {
        let line = |colour| Self {
            colour,
            width: 1.5,
            dashes: "none",
        };
        let bound = |colour| Self {
            dashes: "6 4",
            ..line(colour)
        };
        match policy {
            Policy::None => bound("#bbbbbb"),
            Policy::Fifo => line("#888888"),
            Policy::Lru => line("#0072b2"),
            Policy::Lfu => line("#cc79a7"),
            Policy::S3Fifo => line("#e69f00"),
            Policy::WTinyLfu => line("#009e73"),
            Policy::Callward => Self {
                width: 4.0,
                ..line("#d55e00")
            },
            Policy::Belady => bound("#222222"),
            Policy::Ttl => bound("#56b4e9"),
        }
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            colour,
            width,
            dashes,
        } = self;
        write!(
            f,
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dashes}\""
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyTrace;

    fn svg(title: &str, capacities: &[u64]) -> String {
        let trace = KeyTrace::from_keys((0..1000_u32).map(|n| (n % 37).to_le_bytes()));
        let capacities: Vec<_> = capacities.iter().copied().map(Capacity::Entries).collect();
        let policies = [Policy::Lru, Policy::Belady];
        let found = Comparison::of(&trace, &capacities, &policies, &|_, _| ()).unwrap();
        Plot::new(title, &found).to_string()
    }

    /// The numbers of everything that is drawn.
    fn numbers(svg: &str) -> Vec<f64> {
        let paths = svg
            .split(" d=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        paths
            .flat_map(|path| path.split(|c: char| "MLHV ".contains(c)))
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().unwrap())
            .collect()
    }

    #[test]
    fn the_broad_line_hides_none_of_the_thin_ones() {
        let trace = KeyTrace::from_keys(["a", "b", "a"]);
        let found = Comparison::of(&trace, &[Capacity::Entries(1)], &Policy::ALL, &|_, _| ());
        let svg = Plot::new("", &found.unwrap()).to_string();
        let dot = |policy| svg.find(&format!("<title>{policy},")).unwrap();
        assert!(dot(Policy::Callward) < dot(Policy::Lru));
    }

    #[test]
    fn each_policy_has_a_line_and_a_name() {
        let svg = svg("a title", &[1, 10, 100]);
        assert_eq!(svg.matches("stroke-linejoin").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 6);
        for word in [
            ">lru</text>",
            ">belady</text>",
            ">a title</text>",
            "capacity, entries",
        ] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(svg.contains("lru, 100: 96.30 %"), "{svg}");
    }

    #[test]
    fn everything_is_inside_the_picture() {
        for capacities in [&[][..], &[0], &[1], &[7, 7], &[1, u64::MAX], &[0, 5, 5000]] {
            for number in numbers(&svg("", capacities)) {
                assert!((0.0..=WIDTH).contains(&number), "{capacities:?}: {number}");
            }
        }
    }

    #[test]
    fn a_name_is_text_and_no_part_of_the_document() {
        let svg = svg("</text><script>&\u{1b}", &[1]);
        assert!(
            svg.contains("&lt;/text&gt;&lt;script&gt;&amp;\u{fffd}</text>"),
            "{svg}"
        );
    }

    #[test]
    fn large_numbers_are_short() {
        for (number, want) in [(1.0, "1"), (500.0, "500"), (2e4, "20k"), (1e6, "1M")] {
            assert_eq!(short(number), want);
        }
    }
}
