#include "prony/workload/words.hpp"

#include <iterator>

namespace prony::workload {
namespace {

constexpr std::string_view kWords[] = {
    "about",     "above",    "across",   "act",      "action",   "add",       "after",
    "again",     "against",  "age",      "ago",      "agree",    "air",       "all",
    "allow",     "almost",   "alone",    "along",    "already",  "also",      "always",
    "among",     "and",      "animal",   "answer",   "any",      "anyone",    "appear",
    "apple",     "area",     "arm",      "around",   "arrive",   "art",       "ask",
    "at",        "away",     "baby",     "back",     "bad",      "bag",       "ball",
    "bank",      "base",     "be",       "bear",     "beat",     "beauty",    "because",
    "become",    "bed",      "before",   "began",    "begin",    "behind",    "being",
    "believe",   "below",    "beside",   "best",     "better",   "between",   "big",
    "bird",      "black",    "blue",     "board",    "boat",     "body",      "bone",
    "book",      "born",     "both",     "bottom",   "box",      "boy",       "branch",
    "bread",     "break",    "bridge",   "bright",   "bring",    "brother",   "brought",
    "brown",     "build",    "building", "burn",     "business", "busy",      "but",
    "buy",       "by",       "call",     "came",     "camp",     "can",       "capital",
    "captain",   "car",      "card",     "care",     "carry",    "case",      "cat",
    "catch",     "cause",    "cell",     "center",   "century",  "certain",   "chair",
    "chance",    "change",   "chapter",  "check",    "child",    "choose",    "church",
    "circle",    "city",     "class",    "clean",    "clear",    "climb",     "clock",
    "close",     "cloth",    "cloud",    "coast",    "cold",     "color",     "column",
    "come",      "common",   "company",  "compare",  "complete", "condition", "consider",
    "contain",   "continue", "control",  "cook",     "cool",     "copy",      "corn",
    "corner",    "correct",  "cost",     "could",    "count",    "country",   "couple",
    "course",    "court",    "cover",    "cow",      "create",   "cross",     "crowd",
    "cry",       "current",  "cut",      "dance",    "danger",   "dark",      "daughter",
    "day",       "deal",     "dear",     "decide",   "deep",     "degree",    "depend",
    "describe",  "desert",   "design",   "desk",     "detail",   "develop",   "differ",
    "difficult", "dinner",   "direct",   "discuss",  "distance", "divide",    "do",
    "doctor",    "dog",      "dollar",   "door",     "double",   "down",      "draw",
    "dream",     "dress",    "drink",    "drive",    "drop",     "dry",       "during",
    "each",      "ear",      "early",    "earth",    "ease",     "east",      "easy",
    "eat",       "edge",     "effect",   "egg",      "eight",    "either",    "electric",
    "else",      "empty",    "end",      "energy",   "engine",   "enjoy",     "enough",
    "enter",     "equal",    "even",     "evening",  "event",    "ever",      "every",
    "exact",     "example",  "except",   "expect",   "explain",  "express",   "eye",
    "face",      "fact",     "fair",     "fall",     "family",   "famous",    "far",
    "farm",      "fast",     "father",   "favor",    "fear",     "feed",      "feel",
    "feet",      "fell",     "few",      "field",    "figure",   "fill",      "final",
    "find",      "fine",     "finger",   "finish",   "fire",     "first",     "fish",
    "fit",       "five",     "flat",     "floor",    "flow",     "flower",    "fly",
    "follow",    "food",     "foot",     "for",      "force",    "foreign",   "forest",
    "form",      "forward",  "found",    "four",     "free",     "fresh",     "friend",
    "from",      "front",    "fruit",    "full",     "fun",      "future",    "game",
    "garden",    "gas",      "gather",   "gave",     "general",  "gentle",    "get",
    "girl",      "give",     "glad",     "glass",    "go",       "gold",      "gone",
    "good",      "got",      "govern",   "grand",    "grass",    "gray",      "great",
    "green",     "ground",   "group",    "grow",     "guess",    "guide",     "hair",
    "half",      "hand",     "happen",   "happy",    "hard",     "has",       "hat",
    "have",      "head",     "hear",     "heart",    "heat",     "heavy",     "help",
    "her",       "here",     "high",     "hill",     "him",      "his",       "history",
    "hit",       "hold",     "hole",     "home",     "hope",     "horse",     "hot",
    "hotel",     "hour",     "house",    "how",      "huge",     "human",     "hundred",
    "hurry",     "ice",      "idea",     "if",       "imagine",  "in",        "inch",
    "include",   "indeed",   "industry", "inside",   "interest", "into",      "iron",
    "is",        "island",   "it",       "job",      "join",     "jump",      "just",
    "keep",      "key",      "kind",     "king",     "kitchen",  "knew",      "know",
    "lady",      "lake",     "land",     "language", "large",    "last",      "late",
    "laugh",     "law",      "lay",      "lead",     "learn",    "least",     "leave",
    "left",      "leg",      "length",   "less",     "let",      "letter",    "level",
    "lie",       "life",     "lift",     "light",    "like",     "line",      "list",
    "listen",    "little",   "live",     "local",    "long",     "look",      "lose",
    "lot",       "loud",     "love",     "low",      "machine",  "made",      "main",
    "make",      "man",      "many",     "map",      "mark",     "market",    "matter",
    "may",       "me",       "mean",     "measure",  "meat",     "meet",      "member",
    "metal",     "method",   "middle",   "might",    "mile",     "milk",      "mind",
    "minute",    "miss",     "modern",   "moment",   "money",    "month",     "moon",
    "more",      "morning",  "most",     "mother",   "mountain", "mouth",     "move",
    "much",      "music",    "must",     "name",     "nation",   "nature",    "near",
    "need",      "never",    "new",      "next",     "night",    "nine",      "no",
    "noise",     "north",    "nose",     "note",     "nothing",  "notice",    "now",
    "number",    "object",   "ocean",    "off",      "office",   "often",     "oil",
    "old",       "once",     "one",      "only",     "open",     "order",     "other",
    "our",       "out",      "over",     "own",      "page",     "paint",     "pair",
    "paper",     "part",     "party",    "pass",     "past",     "path",      "peace",
    "people",
};
static_assert(std::size(kWords) == 512);

}  // namespace

std::span<const std::string_view> common_words() {
  return kWords;
}

}  // namespace prony::workload
