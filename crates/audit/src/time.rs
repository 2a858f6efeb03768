//! When something was, as people and machines write it: RFC 3339, in UTC, to the microsecond.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns what the clock on the wall shows. A record is told by it, nothing waits by it.
#[expect(
    clippy::disallowed_methods,
    reason = "an auditor compares records with what other systems wrote"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// Writes a time. One before 1970 is taken for 1970: no clock that runs shows it.
pub(crate) fn text(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros()
    )
}

/// Reads a time that [`text`] wrote, to the second.
pub(crate) fn read(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let secs = days(year, month, day)?
        .checked_mul(86_400)?
        .checked_add(hour * 3600 + minute * 60 + second)?;
    UNIX_EPOCH.checked_add(Duration::from_secs(secs))
}

/// From days since 1970-01-01 to year, month and day.
///
/// H. Hinnant, `chrono`-Compatible Low-Level Date Algorithms, `civil_from_days`: years begin in March,
/// so that the day that is not always there comes last; 400 years are always as long.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}

/// The way back: `days_from_civil` of the same source. Nothing for a day before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, of_era) = (year / 400, year % 400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day.checked_sub(1)?;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64, micros: u32) -> SystemTime {
        UNIX_EPOCH + Duration::new(secs, micros * 1000)
    }

    #[test]
    fn times_are_written_as_the_standard_says() {
        for (secs, micros, written) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.000001Z"),
            (1_709_251_199, 999_999, "2024-02-29T23:59:59.999999Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
            (1_000_000_000, 0, "2001-09-09T01:46:40.000000Z"),
        ] {
            assert_eq!(text(at(secs, micros)), written);
            assert_eq!(read(written), Some(at(secs, 0)));
        }
        assert_eq!(read("yesterday"), None);
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_097 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
    }
}
