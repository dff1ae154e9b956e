//! How much one episode, and all together, may ask for.

use super::Options;
use gsj_cutoff::tokens::Claims;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most episodes whose rates are remembered; beyond, those that asked longest ago are forgotten.
const EPISODES: usize = 4096;

/// What a rate is counted for: one token's scope.
type Key = (String, u32, String);

/// Token buckets: each holds what one second brings, and fills up again while nobody asks.
pub(super) struct Limiter {
    overall: Option<NonZeroU32>,
    each: Option<NonZeroU32>,
    buckets: Mutex<Buckets>,
}

#[derive(Default)]
struct Buckets {
    overall: Option<Bucket>,
    each: BTreeMap<Key, Bucket>,
}

#[derive(Clone, Copy)]
struct Bucket {
    held: f64,
    at: Instant,
}

impl Bucket {
    /// What is there now, when a full one holds what one second brings.
    fn filled(before: Option<Self>, rate: NonZeroU32, now: Instant) -> Self {
        let rate = f64::from(rate.get());
        let held = match before {
            Some(Self { held, at }) => rate.min(held + now.saturating_duration_since(at).as_secs_f64() * rate),
            None => rate,
        };
        Self { held, at: now }
    }

    /// How long to wait for one call, when there is none now.
    fn lacks(self, rate: NonZeroU32) -> Option<Duration> {
        (self.held < 1.0).then(|| Duration::from_secs_f64((1.0 - self.held) / f64::from(rate.get())))
    }
}

impl Limiter {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            overall: options.calls_per_second,
            each: options.calls_per_second_per_episode,
            buckets: Mutex::default(),
        }
    }

    /// Takes one call, or says how long to wait for it; a call that is refused takes nothing.
    pub(super) fn take(&self, claims: &Claims, now: Instant) -> Result<(), Duration> {
        if self.overall.is_none() && self.each.is_none() {
            return Ok(());
        }
        // Buckets are replaced whole, so a poisoned lock guards whole ones.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let overall = self.overall.map(|rate| (rate, Bucket::filled(buckets.overall, rate, now)));
        let key = || (claims.case_id.clone(), claims.timestep, claims.episode_id.clone());
        let each = self.each.map(|rate| {
            let key = key();
            let bucket = Bucket::filled(buckets.each.get(&key).copied(), rate, now);
            (rate, bucket, key)
        });
        let waits = [
            overall.and_then(|(rate, bucket)| bucket.lacks(rate)),
            each.as_ref().and_then(|(rate, bucket, _)| bucket.lacks(*rate)),
        ];
        if let Some(wait) = waits.into_iter().flatten().max() {
            return Err(wait);
        }
        if let Some((_, bucket)) = overall {
            buckets.overall = Some(Bucket { held: bucket.held - 1.0, ..bucket });
        }
        if let Some((_, bucket, key)) = each {
            if buckets.each.len() >= EPISODES && !buckets.each.contains_key(&key) {
                forget(&mut buckets.each, now);
            }
            buckets.each.insert(key, Bucket { held: bucket.held - 1.0, ..bucket });
        }
        Ok(())
    }
}

/// Drops the buckets that are full again, and where none is, the older half.
fn forget(buckets: &mut BTreeMap<Key, Bucket>, now: Instant) {
    let second = Duration::from_secs(1);
    buckets.retain(|_, bucket| now.saturating_duration_since(bucket.at) < second);
    if buckets.len() >= EPISODES {
        let mut times: Vec<Instant> = buckets.values().map(|bucket| bucket.at).collect();
        let middle = times.len() / 2;
        let (_, at, _) = times.select_nth_unstable(middle);
        let at = *at;
        buckets.retain(|_, bucket| bucket.at > at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn limiter(overall: u32, each: u32) -> Limiter {
        let mut options = Options::new(Arc::new(|| 0));
        options.calls_per_second = NonZeroU32::new(overall);
        options.calls_per_second_per_episode = NonZeroU32::new(each);
        Limiter::new(&options)
    }

    fn claims(episode: &str) -> Claims {
        Claims { case_id: "c".into(), timestep: 1, episode_id: episode.into(), exp: 0 }
    }

    #[test]
    fn an_episode_that_asks_too_often_waits_and_others_do_not() {
        let (limiter, now) = (limiter(0, 2), Instant::now());
        assert_eq!([0; 3].map(|_| limiter.take(&claims("a"), now).is_ok()), [true, true, false]);
        assert_eq!(limiter.take(&claims("b"), now), Ok(()));
        assert_eq!(limiter.take(&claims("a"), now), Err(Duration::from_millis(500)));
        let later = now + Duration::from_millis(500);
        assert_eq!([0; 2].map(|_| limiter.take(&claims("a"), later).is_ok()), [true, false]);
        let much_later = now + Duration::from_secs(3600);
        assert_eq!([0; 3].map(|_| limiter.take(&claims("a"), much_later).is_ok()), [true, true, false]);
    }

    #[test]
    fn all_together_wait_as_well_and_a_refused_call_costs_nothing() {
        let (limiter, now) = (limiter(3, 2), Instant::now());
        assert_eq!([0; 4].map(|_| limiter.take(&claims("a"), now).is_ok()), [true, true, false, false]);
        assert_eq!([0; 2].map(|_| limiter.take(&claims("b"), now).is_ok()), [true, false]);
    }

    #[test]
    fn without_limits_nobody_waits_and_nothing_is_kept() {
        let (limiter, now) = (limiter(0, 0), Instant::now());
        assert!((0..10_000).all(|_| limiter.take(&claims("a"), now).is_ok()));
        assert!(limiter.buckets.lock().expect("whole").each.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (limiter, now) = (limiter(0, 2), Instant::now());
        for number in 0..3 * EPISODES {
            assert!(limiter.take(&claims(&number.to_string()), now).is_ok());
        }
        assert!(limiter.buckets.lock().expect("whole").each.len() <= EPISODES);
    }
}
