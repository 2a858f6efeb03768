//! Figures out of many figures.

/// The value that this share of all values is at or below, by the nearest rank. Nothing of nothing.
#[must_use]
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The middle one; of an even number, the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied()?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted.get(sorted.len() / 2 - 1).copied()?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_are_there() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.5), Some(50.0));
        assert_eq!(percentile(&hundred, 0.99), Some(99.0));
        assert_eq!(percentile(&hundred, 1.0), Some(100.0));
        assert_eq!(percentile(&[7.0], 0.01), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
