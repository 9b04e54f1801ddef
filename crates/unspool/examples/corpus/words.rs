//! The vocabulary: the repository's words by frequency, invented words with similar spelling, names
//! made of both, and prose.
//!
//! A real archive has a few words everywhere and very many that occur once. A vocabulary of a few
//! hundred words would make every index small and every search fast, so rare words are invented
//! from the repository's letter trigrams.

use std::collections::BTreeMap;

use crate::random::{Random, mix};

const INVENTED: usize = 60_000;
const RANKS: usize = 1 << 16;

/// How a name is spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Snake,
    Camel,
    Shouted,
}

pub struct Words {
    /// All words, most frequent first, invented ones last. One string, because most output is names
    /// and separate strings would cost a cache miss per word.
    book: String,
    /// The start of each word, and the end of the last.
    starts: Vec<u32>,
    real: usize,
    /// Maps 16 random bits to a rank, so that the n-th word is about 1/n as frequent as the first.
    ranks: Vec<u32>,
    chain: Chain,
}

/// A Markov chain over the repository's prose: a word is followed by one that follows it there.
#[derive(Default)]
struct Chain {
    tokens: Vec<String>,
    sequence: Vec<u32>,
    /// Positions in `sequence` by token; those of token `n` start at `starts[n]`.
    places: Vec<u32>,
    starts: Vec<u32>,
}

impl Words {
    pub fn new(text: &str, prose: &[&str]) -> Words {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for word in text.split(|letter: char| !letter.is_ascii_alphabetic()) {
            if (3..=14).contains(&word.len()) {
                *counts.entry(word.to_ascii_lowercase()).or_default() += 1;
            }
        }
        let mut book: Vec<(String, u32)> = counts.into_iter().collect();
        book.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let mut book: Vec<String> = book.into_iter().map(|(word, _)| word).collect();
        let real = book.len();
        invent(&mut book, real);
        let mut starts = vec![0];
        starts.extend(book.iter().scan(0, |end, word| {
            *end += word.len() as u32;
            Some(*end)
        }));
        let ranks = (0..RANKS)
            .map(|bits| {
                let fraction = bits as f64 / RANKS as f64;
                ((real as f64).powf(fraction) as u32).min(real as u32) - 1
            })
            .collect();
        Words { book: book.concat(), starts, real, ranks, chain: Chain::new(prose) }
    }

    /// Maps bits to a word: mostly one of the repository, by frequency.
    pub fn word(&self, bits: u64) -> &str {
        if bits >> 62 == 0 {
            return self.at(self.real + (bits >> 16) as usize % INVENTED);
        }
        self.at(self.ranks[bits as usize % RANKS] as usize)
    }

    fn at(&self, index: usize) -> &str {
        &self.book[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    pub fn invented(&self, random: &mut Random) -> &str {
        self.at(self.real + random.below(INVENTED))
    }

    /// Words that occur in nearly every session.
    pub fn common(&self) -> impl Iterator<Item = &str> {
        (0..self.real.min(400)).map(|index| self.at(index)).filter(|word| word.len() >= 4)
    }

    /// A name of one to three words. The same bits always give the same name.
    pub fn name(&self, out: &mut String, bits: u64, spelling: Spelling) {
        let count = [1, 2, 2, 2, 2, 3, 3, 2][(bits >> 61) as usize];
        for index in 0..count {
            let word = self.word(mix(bits.wrapping_add(index)));
            if index > 0 && spelling != Spelling::Camel {
                out.push('_');
            }
            let from = out.len();
            out.push_str(word);
            match spelling {
                Spelling::Snake => {}
                Spelling::Camel => out[from..from + 1].make_ascii_uppercase(),
                Spelling::Shouted => out[from..].make_ascii_uppercase(),
            }
        }
    }

    /// Sentences of about `words` words, with names, paths and numbers as agents write them.
    pub fn prose(&self, out: &mut String, random: &mut Random, words: usize) {
        let mut place = random.below(self.chain.sequence.len());
        let mut starts_sentence = true;
        for index in 0..words {
            if index > 0 && !out.ends_with('\n') {
                out.push(' ');
            }
            let from = out.len();
            match random.below(1000) {
                0..45 => {
                    out.push('`');
                    self.name(out, random.next(), Spelling::Snake);
                    out.push('`');
                }
                45..60 => {
                    out.push('`');
                    self.name(out, random.next(), Spelling::Camel);
                    out.push('`');
                }
                60..95 => out.push_str(self.invented(random)),
                95..103 => random.digits(out, 1 + index % 5),
                103..108 => {
                    out.push('`');
                    self.path(out, random.next());
                    out.push('`');
                }
                108..111 => out.push_str(random.pick(&FOREIGN)),
                _ => out.push_str(self.chain.token(place)),
            }
            if starts_sentence {
                // A word may start with a multi-byte character, which stays unchanged.
                if let Some(first) = out.get_mut(from..from + 1) {
                    first.make_ascii_uppercase();
                }
            }
            starts_sentence = out.ends_with(['.', '?', '!']);
            // Paragraphs are short.
            if starts_sentence && random.chance(120) {
                out.push_str("\n\n");
            }
            place = self.chain.following(place, random);
        }
        out.truncate(out.trim_end().len());
        if !starts_sentence {
            out.push('.');
        }
    }

    /// A path inside a project. The same bits always give the same path.
    pub fn path(&self, out: &mut String, bits: u64) {
        const ROOTS: [&str; 8] =
            ["src", "src", "src", "crates", "tests", "docs", "packages", "internal"];
        const ENDINGS: [&str; 16] = [
            "rs", "rs", "rs", "rs", "rs", "rs", "rs", "rs", "ts", "ts", "py", "go", "tsx", "md",
            "toml", "rs",
        ];
        out.push_str(ROOTS[(bits & 7) as usize]);
        for level in 0..1 + (bits >> 4) % 3 {
            out.push('/');
            self.name(out, mix(bits ^ level), Spelling::Snake);
        }
        out.push('.');
        out.push_str(ENDINGS[(bits >> 8 & 15) as usize]);
    }
}

/// Non-English words and non-ASCII characters, as in real prompts and outputs.
const FOREIGN: [&str; 14] = [
    "größer",
    "naïve",
    "façade",
    "übrigens",
    "señal",
    "décalage",
    "キャッシュ",
    "検索",
    "索引",
    "→",
    "≥",
    "✅",
    "—",
    "поиск",
];

/// Invents words from letter trigrams.
fn invent(book: &mut Vec<String>, real: usize) {
    let mut following = vec![Vec::new(); 27 * 27];
    let code =
        |letter: u8| if letter.is_ascii_lowercase() { usize::from(letter - b'a') } else { 26 };
    for word in &book[..real] {
        let (mut before, mut last) = (26, 26);
        for letter in word.bytes().chain([b' ']) {
            following[before * 27 + last].push(letter);
            (before, last) = (last, code(letter));
        }
    }
    let mut random = Random::new(real as u64);
    while book.len() < real + INVENTED {
        let mut word = String::new();
        let (mut before, mut last) = (26, 26);
        while word.len() < 13 {
            let letter = random.pick(&following[before * 27 + last]);
            if letter == b' ' {
                break;
            }
            word.push(char::from(letter));
            (before, last) = (last, code(letter));
        }
        if word.len() > 4 {
            book.push(word);
        }
    }
}

impl Chain {
    fn new(prose: &[&str]) -> Chain {
        let mut chain = Chain::default();
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for word in prose.iter().flat_map(|line| line.split_ascii_whitespace()) {
            let plain = word.trim_matches(|letter: char| "`*_#|()[]\"".contains(letter));
            if plain.is_empty() || !plain.contains(|letter: char| letter.is_alphabetic()) {
                continue;
            }
            let next = chain.tokens.len() as u32;
            let number = *numbers.entry(plain).or_insert(next);
            if number == next {
                chain.tokens.push(plain.to_owned());
            }
            chain.sequence.push(number);
        }
        if chain.sequence.is_empty() {
            chain.tokens.push("text".to_owned());
            chain.sequence.push(0);
        }
        chain.starts = vec![0; chain.tokens.len() + 1];
        for &token in &chain.sequence {
            chain.starts[token as usize + 1] += 1;
        }
        for token in 0..chain.tokens.len() {
            chain.starts[token + 1] += chain.starts[token];
        }
        let mut free = chain.starts.clone();
        chain.places = vec![0; chain.sequence.len()];
        for (place, &token) in chain.sequence.iter().enumerate() {
            chain.places[free[token as usize] as usize] = place as u32;
            free[token as usize] += 1;
        }
        chain
    }

    fn token(&self, place: usize) -> &str {
        &self.tokens[self.sequence[place] as usize]
    }

    /// The position after a random occurrence of the word at `place`.
    fn following(&self, place: usize, random: &mut Random) -> usize {
        let token = self.sequence[place] as usize;
        let places = &self.places[self.starts[token] as usize..self.starts[token + 1] as usize];
        (random.pick(places) as usize + 1) % self.sequence.len()
    }
}
