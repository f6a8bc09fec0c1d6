//! Which known name somebody meant: [`nearest`], by edit distance.

/// The `count` candidates closest to `name`, the closest first; only those that resemble it.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((likeness(&wanted, &candidate.to_lowercase())?, candidate)))
        .collect();
    scored.sort();
    scored.into_iter().take(count).map(|(_, candidate)| candidate).collect()
}

/// Smaller is closer; `None` is no resemblance.
fn likeness(wanted: &str, candidate: &str) -> Option<usize> {
    let distance = edit_distance(wanted, candidate);
    let contained = wanted.len() >= 3 && (candidate.contains(wanted) || wanted.contains(candidate));
    // A third of the letters may differ; "gpt-5" in "gpt-5-mini" counts as near at any length.
    let limit = wanted.chars().count().max(candidate.chars().count()).div_ceil(3);
    (distance <= limit || contained).then_some(distance)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_letters() {
        for (a, b, expected) in
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("model", "modle", 2)]
        {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
            assert_eq!(edit_distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_closest_come_first_and_strangers_do_not_come() {
        let models = ["gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-4.1", "whisper-1", "tts-1"];
        assert_eq!(nearest("gpt-5-min", models, 3), ["gpt-5-mini", "gpt-5-nano", "gpt-5"]);
        assert_eq!(nearest("zebra", models, 3), Vec::<&str>::new());
        assert_eq!(nearest("GPT-5", models, 1), ["gpt-5"]);
    }
}
