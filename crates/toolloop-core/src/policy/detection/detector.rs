//! [`LoopDetector`]: looks at calls and what came of them, and says when they go in circles.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{DetectionAction, LoopDetectorConfig};
use super::fingerprint;
use super::found::{LoopDetection, LoopKind};
use crate::chat::ToolCall;
use crate::tool_content::ToolContent;

/// Finds a model that goes in circles. It is told the calls of each reply before they run, and
/// their results after.
///
/// A run keeps one of its own; this is for code that runs tools without one.
///
/// ```
/// use std::time::Duration;
/// use toolloop_core::policy::detection::{CallEnd, LoopDetector, LoopDetectorConfig};
/// use toolloop_core::{ToolCall, ToolContent};
///
/// let config = LoopDetectorConfig::default();
/// let mut detector = LoopDetector::default();
/// let call = ToolCall { id: "c".into(), name: "read".into(), arguments: "a.txt".into() };
/// let content = ToolContent::from("the same");
/// for reply in 1..=4 {
///     detector.observe_calls(&config, reply, "", [&call]);
///     let end = CallEnd { call: &call, content: &content, is_error: false, took: Duration::ZERO };
///     let found = detector.observe_results(&config, reply, [end]);
///     assert_eq!(found.len(), usize::from(reply == 4));
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopDetector {
    /// The last calls, oldest first.
    history: VecDeque<Seen>,
    /// Replies with a detection.
    detections: u32,
    /// The last of them.
    detected_in: Option<u32>,
    /// Calls since then.
    calm: usize,
    /// What was found in the calls of the current reply, and may yet be refuted by their results.
    suspects: Vec<LoopDetection>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub struct CallEnd<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// What it gave.
    pub content: &'a ToolContent,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran.
    pub took: Duration,
}

/// A call, as far as it is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The reply that made it.
    reply: u32,
    /// The text of that reply.
    text: Option<u64>,
    tool_name: String,
    call: u64,
    /// `None` until it has one.
    result: Option<SeenResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SeenResult {
    fingerprint: u64,
    is_error: bool,
    /// No error, and not what the same call gave before.
    is_new: bool,
    /// No error, and it took so long that a model that makes it waits for something.
    is_pause: bool,
}

impl LoopDetector {
    /// Takes the calls of reply number `reply`, and its text, before the calls run. Gives what
    /// was found, at most once for each call.
    ///
    /// Where results count, what leads to [`DetectionAction::Warn`] is a suspicion as yet:
    /// [`observe_results`](Self::observe_results) gives it again if the results confirm it.
    pub fn observe_calls<'a>(
        &mut self,
        config: &LoopDetectorConfig,
        reply: u32,
        text: &str,
        calls: impl IntoIterator<Item = &'a ToolCall>,
    ) -> Vec<LoopDetection> {
        let text = fingerprint::of_text(text);
        let said = text.map_or(0, |text| self.times_said(config, text));
        let mut found = Vec::new();
        let mut first = None;
        for call in calls {
            // What a reply calls at once is one round, whatever its place in it.
            let may_begin_round = first.is_none();
            first.get_or_insert(call);
            self.calm += 1;
            let print = fingerprint::of_call(call);
            let equal = self.equal_calls(config, print);
            if equal > config.max_exact_duplicates {
                found.push(detection(call, LoopKind::ExactDuplicate, equal));
            } else if may_begin_round && let Some(tools) = self.pattern(config, print) {
                found.push(detection(call, LoopKind::Pattern { tools }, 3));
            }
            let tool_name = call.name.clone();
            self.history.push_back(Seen { reply, text, tool_name, call: print, result: None });
            while self.history.len() > window(config) {
                self.history.pop_front();
            }
        }
        if let Some(call) = first
            && found.is_empty()
            && said > config.max_exact_duplicates
        {
            found.push(detection(call, LoopKind::RepeatedText, said));
        }
        let found = self.escalate(config, reply, found);
        let warns = found.first().is_some_and(|first| first.action == DetectionAction::Warn);
        self.suspects = if config.result_aware && warns { found.clone() } else { Vec::new() };
        found
    }

    /// Whether results may yet refute what was found in the current calls: then nothing is to be
    /// done before [`observe_results`](Self::observe_results).
    pub fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// Lets no result refute what was found in the current calls: somebody has decided about it.
    pub fn dismiss_suspects(&mut self) {
        self.suspects.clear();
    }

    /// Takes how the calls of reply number `reply` ended, in call order. Gives what was found, at
    /// most once for each call.
    pub fn observe_results<'a>(
        &mut self,
        config: &LoopDetectorConfig,
        reply: u32,
        results: impl IntoIterator<Item = CallEnd<'a>>,
    ) -> Vec<LoopDetection> {
        if !config.result_aware {
            return Vec::new();
        }
        let results: Vec<_> = results.into_iter().collect();
        let calls = self.history.iter().rev().take_while(|seen| seen.reply == reply).count();
        // Of a reply with more calls than the window holds, the last ones are here.
        let from = self.history.len() - calls;
        let results = &results[results.len().saturating_sub(calls)..];
        for (at, end) in (from..).zip(results) {
            let fingerprint = fingerprint::of_result(end.call, end.content, end.is_error);
            let is_new = !end.is_error && !self.has_given(self.history[at].call, fingerprint);
            let is_error = end.is_error;
            let is_pause = !is_error && end.took >= PAUSE;
            let result = SeenResult { fingerprint, is_error, is_new, is_pause };
            self.history[at].result = Some(result);
        }
        let suspects = std::mem::take(&mut self.suspects);
        if !suspects.is_empty() {
            let is_confirmed = |suspect: &LoopDetection| {
                let at = results.iter().position(|end| end.call.id == suspect.call_id);
                at.is_none_or(|at| self.is_confirmed(&suspect.kind, from, from + at))
            };
            let confirmed: Vec<_> = suspects.into_iter().filter(is_confirmed).collect();
            if !confirmed.is_empty() {
                return confirmed;
            }
            self.detections = self.detections.saturating_sub(1);
            self.detected_in = None;
        }
        if self.detected_in == Some(reply) {
            // It was decided about this reply already.
            return Vec::new();
        }
        let mut found = Vec::new();
        for (at, end) in (from..).zip(results) {
            let failures = if end.is_error { self.equal_failures(at) } else { 0 };
            if failures > config.max_exact_duplicates {
                found.push(detection(end.call, LoopKind::SameError, failures));
            }
        }
        self.escalate(config, reply, found)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// How often a call stands in the window, itself included, without a change of its result.
    fn equal_calls(&self, config: &LoopDetectorConfig, call: u64) -> usize {
        let mut times = 1;
        let mut known = None;
        let mut is_news_since = false;
        for seen in self.history.iter().rev().take(config.exact_window_size.saturating_sub(1)) {
            let result = seen.result.filter(|_| config.result_aware);
            if seen.call != call {
                is_news_since |= result.is_some_and(|result| result.is_new);
                continue;
            }
            if let Some(result) = result {
                let is_other = *known.get_or_insert(result.fingerprint) != result.fingerprint;
                // A pause is the same each time; what counts is what comes after it.
                if is_other || result.is_pause && is_news_since {
                    break;
                }
            }
            times += 1;
        }
        times
    }

    /// Whether the results of a reply, whose calls stand from `from` on, confirm what was found at
    /// the call at `at`.
    fn is_confirmed(&self, kind: &LoopKind, from: usize, at: usize) -> bool {
        if *kind != LoopKind::ExactDuplicate {
            let mut results = self.history.range(from..).filter_map(|seen| seen.result);
            return !results.any(|result| result.is_new);
        }
        let fingerprint = |seen: &Seen| seen.result.map(|result| result.fingerprint);
        let seen = &self.history[at];
        let equal = self.history.range(..at).rev().filter(|before| before.call == seen.call);
        let before = equal.filter_map(fingerprint).next();
        before.is_none() || before == fingerprint(seen)
    }

    /// The tools of the cycle whose third round this call begins.
    fn pattern(&self, config: &LoopDetectorConfig, call: u64) -> Option<Vec<String>> {
        if !config.enable_pattern_detection {
            return None;
        }
        let calls: Vec<&Seen> = self.history.iter().rev().collect();
        (config.min_pattern_length.max(2)..=config.max_pattern_length).find_map(|length| {
            if 2 * length + 1 > config.pattern_window_size {
                return None;
            }
            let (second, first) = calls.get(..2 * length)?.split_at(length);
            let is_cycle = first.last()?.call == call
                && first.iter().any(|seen| seen.call != call)
                && first.iter().zip(second).all(|(first, second)| {
                    first.call == second.call
                        && !(config.result_aware && is_progress(first.result, second.result))
                });
            is_cycle.then(|| first.iter().rev().map(|seen| seen.tool_name.clone()).collect())
        })
    }

    /// In how many replies the tool of the call at `at` has failed as it did there, and never
    /// otherwise or not at all meanwhile.
    fn equal_failures(&self, at: usize) -> usize {
        let failed = &self.history[at];
        let mut replies = 0;
        let mut last = None;
        let same_tool = self.history.range(..=at).rev().filter(|s| s.tool_name == failed.tool_name);
        for seen in same_tool {
            let fingerprint = |seen: &Seen| seen.result.map(|r| (r.is_error, r.fingerprint));
            if fingerprint(seen) != fingerprint(failed) {
                break;
            }
            // Calls of one reply could not know of each other's failure.
            replies += usize::from(last != Some(seen.reply));
            last = Some(seen.reply);
        }
        replies
    }

    /// How many replies in a row have said this, the one that says it now included, since
    /// something new came.
    fn times_said(&self, config: &LoopDetectorConfig, text: u64) -> usize {
        if !config.result_aware {
            return 0;
        }
        let mut times = 1;
        let mut last = None;
        let mut was_new = false;
        for seen in self.history.iter().rev() {
            if last != Some(seen.reply) {
                if was_new || seen.text != Some(text) {
                    break;
                }
                times += 1;
                last = Some(seen.reply);
            }
            was_new |= seen.result.is_none_or(|result| result.is_new);
        }
        times
    }

    fn has_given(&self, call: u64, result: u64) -> bool {
        let known = |seen: &Seen| seen.result.is_some_and(|known| known.fingerprint == result);
        self.history.iter().any(|seen| seen.call == call && known(seen))
    }

    /// Says what is to be done about what was found in a reply: one step more than in the reply
    /// before, for the model reads warnings only between replies.
    fn escalate(
        &mut self,
        config: &LoopDetectorConfig,
        reply: u32,
        mut found: Vec<LoopDetection>,
    ) -> Vec<LoopDetection> {
        if found.is_empty() {
            return found;
        }
        if self.calm > config.pattern_window_size {
            self.detections = 0;
        }
        self.calm = 0;
        self.detections += 1;
        self.detected_in = Some(reply);
        for detection in &mut found {
            detection.number = self.detections;
            detection.action = config.action(self.detections);
        }
        found
    }
}

fn detection(call: &ToolCall, kind: LoopKind, count: usize) -> LoopDetection {
    LoopDetection {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        kind,
        count: u32::try_from(count).unwrap_or(u32::MAX),
        // Both are set by `escalate`.
        number: 0,
        action: DetectionAction::Continue,
    }
}

/// Whether two results of the same call in a cycle show progress. Who pauses between two looks
/// does not turn in circles; the looks themselves still count as equal calls.
fn is_progress(first: Option<SeenResult>, second: Option<SeenResult>) -> bool {
    first.zip(second).is_some_and(|(first, second)| {
        first.fingerprint != second.fingerprint || first.is_pause && second.is_pause
    })
}

/// From here on a call is a pause. Shorter waits save nobody anything.
const PAUSE: Duration = Duration::from_secs(5);

/// Calls that are remembered.
fn window(config: &LoopDetectorConfig) -> usize {
    config.exact_window_size.max(config.pattern_window_size)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str) -> ToolCall {
        ToolCall { id: name.into(), name: name.into(), arguments: json!({}) }
    }

    /// One call a reply, by its letter, each with its result; gives the replies with a detection,
    /// and what it leads to.
    fn found(config: LoopDetectorConfig, calls: &str, result: impl Fn(usize) -> String) -> String {
        let mut detector = LoopDetector::default();
        let mut lines = Vec::new();
        for (number, letter) in calls.chars().enumerate() {
            let reply = u32::try_from(number).unwrap() + 1;
            let call = call(&letter.to_string());
            let mut found = detector.observe_calls(&config, reply, "", [&call]);
            if detector.has_suspects() {
                found.clear();
            }
            let content = result(number).into();
            let took = Duration::ZERO;
            let end = CallEnd { call: &call, content: &content, is_error: false, took };
            found.extend(detector.observe_results(&config, reply, [end]));
            let line = |found: &LoopDetection| {
                let (tools, count) = (found.tools(), found.count);
                format!("{reply}: {tools} x{count} {:?}", found.action)
            };
            lines.extend(found.iter().map(line));
        }
        lines.join(", ")
    }

    fn same(_: usize) -> String {
        "same".into()
    }

    #[test]
    fn the_fourth_equal_call_in_the_window_is_the_first_detection() {
        let config = LoopDetectorConfig::default();
        let steps = "4: a x4 Warn, 5: a x5 Warn, 6: a x6 Terminate";
        assert_eq!(found(config, "aaaaaa", same), steps);
        assert_eq!(found(config, "abacada", same), "7: a x4 Warn");
        // The first has left the window of ten.
        assert_eq!(found(config, "abcdefgaha", same), "");
        assert_eq!(found(config, "abcaefgahia", same), "");
        assert_eq!(found(config, "bacaefgaha", same), "10: a x4 Warn");
    }

    #[test]
    fn a_cycle_is_found_where_its_third_round_begins() {
        let config = LoopDetectorConfig::default();
        assert_eq!(found(config, "abab", same), "");
        assert_eq!(found(config, "ababa", same), "5: a+b x3 Warn");
        assert_eq!(found(config, "abcabca", same), "7: a+b+c x3 Warn");
        assert_eq!(found(config, "abcdabcda", same), "");
        let off = LoopDetectorConfig { enable_pattern_detection: false, ..config };
        assert_eq!(found(off, "ababa", same), "");
        let longer = LoopDetectorConfig { max_pattern_length: 4, ..config };
        assert_eq!(found(longer, "abcdabcda", same), "9: a+b+c+d x3 Warn");
        let narrow = LoopDetectorConfig { pattern_window_size: 6, ..config };
        assert_eq!(found(narrow, "ababa", same), "5: a+b x3 Warn");
        assert_eq!(found(narrow, "abcabca", same), "");
    }

    #[test]
    fn a_result_that_changed_refutes_a_suspicion() {
        let config = LoopDetectorConfig::default();
        let changes_at = |change: usize| move |number: usize| (number >= change).to_string();
        assert_eq!(found(config, "aaaa", changes_at(3)), "");
        assert_eq!(found(config, "aaaa", changes_at(4)), "4: a x4 Warn");
        assert_eq!(found(config, "ababa", changes_at(4)), "");
        // What was refuted is no step of the escalation.
        let steps = "7: a x4 Warn, 8: a x5 Warn, 9: a x6 Terminate";
        assert_eq!(found(config, "aaaaaaaaa", changes_at(3)), steps);
        let blind = LoopDetectorConfig { result_aware: false, ..config };
        assert_eq!(found(blind, "aaaa", changes_at(3)), "4: a x4 Warn");
    }

    #[test]
    fn an_escalation_that_led_somewhere_is_over() {
        let config = LoopDetectorConfig::default();
        let others = |n: u32| (0..n).filter_map(|n| char::from_u32(0x4e00 + n)).collect::<String>();
        let soon = format!("aaaa{}bbbb", others(10));
        assert_eq!(found(config, &soon, same), "4: a x4 Warn, 18: b x4 Warn");
        let third = format!("aaaa{}bbbb{}cccc", others(10), others(10));
        assert!(found(config, &third, same).ends_with("32: c x4 Terminate"));
        let late = format!("aaaaa{}bbbb", others(20));
        assert_eq!(found(config, &late, same), "4: a x4 Warn, 5: a x5 Warn, 29: b x4 Warn");
    }

    #[test]
    fn all_that_is_found_in_a_reply_is_one_step() {
        let config = LoopDetectorConfig { result_aware: false, ..LoopDetectorConfig::default() };
        let mut detector = LoopDetector::default();
        let equal: Vec<_> = (0..6).map(|_| call("a")).collect();
        let found = detector.observe_calls(&config, 1, "", &equal);
        let steps: Vec<_> = found.iter().map(|found| (found.count, found.number)).collect();
        assert_eq!(steps, [(4, 1), (5, 1), (6, 1)]);
        assert_eq!(detector.observe_calls(&config, 2, "", &equal[..1])[0].number, 2);
        detector.clear();
        assert_eq!(detector, LoopDetector::default());
    }
}
