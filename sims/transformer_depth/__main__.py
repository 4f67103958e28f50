"""How the learning-rate scale eta*(L) of Transformers falls with their depth units, and why.

Pre- and post-norm Transformers of D blocks, which are L = 2 D depth units, are drawn for two scales of attention and
three scalings of the branches, and held against the mean field, which is then followed to large L. Besides: how nearly
alike tokens become, how the variance of the stream grows, and how far changes of the stream travel, for changes that
all tokens share and for changes that sum to zero over tokens (Zhang et al. 2026, section 3.5 and appendix D).
"""

from sims.common.command import CommandParser
from sims.common.experiment import Experiment

SIZES = {"blocks": [2, 4, 8, 16, 32, 64], "far": 1_000_000}
PRESETS = {
    "smoke": {"blocks": [2, 4, 8], "width": 64, "tokens": 4, "outputs": 16, "draws": 12, "far": 1000},
    "default": SIZES | {"width": 256, "tokens": 8, "outputs": 64, "draws": 16},
    "paper": SIZES | {"width": 1024, "tokens": 16, "outputs": 256, "draws": 128},
}


def add_options(parser: CommandParser) -> None:
    add = parser.add_argument_group("network").add_argument
    add("--blocks", type=int, nargs="+", metavar="D", help="blocks of the nets that are drawn, three or more; L = 2 D")
    add("--far", type=int, metavar="L", help="depth units to which theory follows the slopes")
    add("--width", type=int, metavar="N", help="channels of a token; nets of half and of a quarter are drawn too")
    add("--heads", type=int, default=4, help="heads of attention; they divide a quarter of the width (default: 4)")
    add("--tokens", type=int, metavar="T", help="tokens of a sample")
    add("--outputs", type=int, metavar="M", help="outputs; the more, the less draws scatter")
    source = "gaussian (default: fresh white tokens), photo (patches of a crop of a photograph), or FILE[::ARRAY]"
    add("--input", default="gaussian", metavar="SOURCE", help=source)
    add("--patch", type=int, default=4, metavar="P", help="pixels along a side of a patch of images (default: 4)")


COMMAND = Experiment("transformer_depth", __doc__, add_options, PRESETS)

if __name__ == "__main__":
    raise SystemExit(COMMAND.main())
