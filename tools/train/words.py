"""Words that fill the templates. Every eighth word of a list is held out: training never uses it there.

This module contains only lists and their split; sentences are in text/ and in the modules that use these words.
"""

HELD_OUT_EVERY = 8


def _words(text):
    return text.split()


def _phrases(text):
    return [part.strip() for part in text.replace("\n", " ").split(",")]


NAMES = _words("""
Anna Ben Clara David Emma Felix Greta Henry Ida Jack Kate Leo Mia Noah Olivia Paul Rosa Sam Tom Una
Victor Wendy Xenia Yusuf Zoe Adam Bella Carl Dora Eric Fiona George Hanna Ivan Julia Karl Lena Max
Nina Oscar Petra Quentin Rita Simon Tina Ulrich Vera Walter Yara Zack Alice Bruno Cora Daniel Elena
Frank Gina Hugo Irene Jonas Klara Lukas Maria Nico Otto Paula Robert Sara Theo Ursula Viola Will
Amir Bianca Chen Diego Esther Farid Gloria Hiro Ines Jamal Kofi Layla Mehmet Nadia Omar Priya Ravi
Sofia Tariq Uma Vikram Wei Ximena Yuki Zara Albert Betty Charles Diana Edgar Flora Gus Helen Isaac
Jane Kevin Laura Martin Nora Oliver Peter Ruth Steve Tara Ava Logan Ethan Mason Lily Chloe Ella Grace
Lucy Harry Jacob Liam Mary John James Linda Susan Mark Anita Boris Carmen Dmitri Eva Fatima Goran
Heidi Igor Jelena Kai Lars Marta Nils Olga Pavel Rosie Sven Toni Ugo Vito Wanda Bob Tim Amy Joe Sue
Aaron Abby Blake Bonnie Cedric Celia Dean Dolly Elias Erin Finn Freya Gavin Gwen Holly Ian Iris Jasper
Joy Keith Kira Lisa Luis Mona Nick Opal Pia Rob Rudi Sally Seth Tess Troy Vince Willa Zeno
""")
CITIES = _phrases("""
Paris, London, Berlin, Rome, Madrid, Vienna, Oslo, Lisbon, Dublin, Athens, Prague, Warsaw, Budapest,
Cairo, Tokyo, Delhi, Boston, Chicago, Denver, Dallas, Miami, Seattle, Austin, Toronto, Montreal, Sydney,
Perth, Lima, Quito, Nairobi, Lagos, Accra, Munich, Hamburg, Cologne, Zurich, Geneva, Milan, Venice,
Naples, Porto, Seville, Krakow, Riga, Vilnius, Helsinki, Bergen, Malmo, Leeds, York, Bath, Oxford, Lyon,
Nice, Lille, Ghent, Bruges, Delft, Utrecht, Osaka, Kyoto, Seoul, Hanoi, Manila, Jakarta, Mumbai, Chennai,
Karachi, Tehran, Ankara, Izmir, Sofia, Belgrade, Zagreb, Split, Cork, Galway, Cardiff, Glasgow, Dundee,
Houston, Phoenix, Portland, Atlanta, Detroit, Havana, Bogota, Santiago, Brisbane, Hobart, Auckland, Dakar,
Tunis, Rabat, Kigali, New York, San Diego, Cape Town, Mexico City, Las Vegas, Hong Kong, Santa Fe
""")
ANIMALS = _words("""
fox cat dog mouse bear rabbit owl frog hedgehog squirrel horse duck penguin elephant lion tiger turtle
snail bee ant whale dolphin wolf deer sheep goat pig cow hen crow sparrow parrot monkey giraffe zebra
camel beaver otter badger mole bat seal crab lizard snake spider butterfly firefly goose swan donkey
kitten puppy raccoon panda koala octopus
""")
HEROES = _phrases("""
robot, dragon, knight, princess, king, queen, wizard, witch, pirate, sailor, farmer, baker, girl, boy,
gardener, painter, ghost, giant, fairy, astronaut, clockmaker, shepherd, miller, fisherman, postman,
teacher, dancer, singer, snowman, little star, old man, old woman, young inventor, monster, troll, elf
""")
TRAITS = _words("""
brave little shy clever lazy curious kind old young happy sad hungry lonely proud friendly tired funny
quiet gentle tiny wise cheerful stubborn small
""")
PLACES = _phrases("""
in a forest, by the sea, on a mountain, in a small village, in a big city, on an island, in a castle,
on a farm, in a garden, in a desert, by a river, in a cave, on the moon, in an old house, on a ship,
in a library, by a lake, in a valley, in a school, in the snow, under a bridge, on a hill, in a tower,
in a mill, at the harbour, in a tent, in a deep wood, on a train, in a bakery, in a market
""")
OBJECTS = _words("""
key lamp book hat ball map ring bell boat kite drum flute clock coin candle mirror umbrella bottle shoe
box letter stone feather basket apple cake scarf violin balloon lantern bicycle teapot button star ladder
spoon crown blanket pencil telescope
""")
COLOURS = _words("red blue green yellow orange purple pink brown black white grey silver gold turquoise")
FOODS = _phrases("""
pizza, soup, bread, rice, pasta, cake, cheese, salad, apples, chocolate, pancakes, ice cream, fish, eggs,
potatoes, tomatoes, noodles, sushi, curry, honey, strawberries, cookies, beans, mushrooms
""")
JOBS = _phrases("""
teacher, doctor, nurse, baker, farmer, painter, pilot, lawyer, driver, cook, engineer, writer, dentist,
gardener, singer, plumber, tailor, student, judge, waiter, carpenter, librarian, chemist, butcher
""")
HOBBIES = _phrases("""
reading, swimming, singing, cooking, running, painting, dancing, chess, football, tennis, hiking,
gardening, fishing, cycling, music, sewing
""")
THINGS = _phrases("""
telephone, wheel, steam engine, light bulb, radio, telescope, printing press, compass, bicycle, piano,
camera, battery, microscope, television, zipper, umbrella, typewriter, airplane, paper, gunpowder, glass,
toothbrush, elevator, submarine, parachute, thermometer, violin, pencil, mirror, lock
""")
MACHINES = _phrases("""
car, fridge, motor, rocket, washing machine, printer, laser, jet engine, nuclear reactor, dishwasher,
clock, vacuum cleaner, satellite, toaster, microwave, bicycle, piano, phone, transistor, camera
""")
SCIENCES = _phrases("""
quantum physics, relativity, chemistry, evolution, gravity, astronomy, biology, economics, philosophy,
photosynthesis, electricity, magnetism, democracy, algebra, geometry, inflation, black holes, genetics,
psychology, thermodynamics, DNA, calculus, statistics, logic, medicine, string theory, dark matter,
machine learning, blockchain, climate change, the stock market, the big bang, politics, capitalism
""")
REGIONS = _phrases("""
Rome, Africa, Asia, China, Brazil, Canada, Russia, India, Alaska, Siberia, Texas, Bavaria, Scotland,
Mongolia, Tibet, Patagonia, California, Europe, Iceland, Madagascar, Persia, Egypt, Sparta, Babylon,
the Ottoman Empire, the Roman Empire, the United States, the Netherlands, Antarctica, Mexico
""")
LANGUAGES = _words("German French Spanish Italian Dutch Polish Greek Latin Japanese Chinese Arabic Turkish Russian Hindi")
GROUPS = {
    "fruits": _words("apple pear plum cherry banana orange grape lemon melon peach"),
    "vegetables": _words("carrot onion potato cabbage pea bean leek pumpkin spinach tomato"),
    "animals": _words("cat dog horse fox bear rabbit cow lion mouse duck"),
    "birds": _words("robin owl eagle crow sparrow duck swan goose stork gull"),
    "colours": _words("red blue green yellow orange purple pink brown black white"),
    "colors": _words("red blue green yellow orange purple pink brown black white"),
    "flowers": _words("rose tulip daisy lily violet poppy orchid iris sunflower lavender"),
    "trees": _words("oak pine birch maple willow beech ash elm cedar fir"),
    "cities": _words("Paris London Berlin Rome Madrid Vienna Oslo Tokyo Cairo Lima"),
    "countries": _words("France Italy Spain Japan Canada Brazil Norway Egypt India Peru"),
    "tools": _words("hammer saw drill screwdriver pliers wrench axe shovel rake file"),
    "drinks": _words("water tea coffee milk juice lemonade cocoa soda cider broth"),
    "sports": _words("football tennis swimming running cycling skiing hockey golf rowing judo"),
    "instruments": _words("piano violin guitar drum flute trumpet harp cello organ horn"),
    "planets": _words("Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune"),
    "months": _words("January February March April May June July August September October November December"),
    "weekdays": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "shapes": _words("circle square triangle oval star cube sphere cone cylinder diamond"),
    "languages": _words("English French Spanish German Italian Greek Japanese Arabic Hindi Dutch"),
    "insects": _words("bee ant wasp beetle butterfly fly moth cricket ladybird mosquito"),
    "clothes": _words("shirt hat coat sock shoe scarf dress glove jacket skirt"),
    "rooms": _words("kitchen bathroom bedroom cellar attic hall pantry office garage lounge"),
}
CAPITALS = dict(pair.split(":") for pair in _phrases("""
France:Paris, Germany:Berlin, Italy:Rome, Spain:Madrid, Austria:Vienna, Norway:Oslo, Portugal:Lisbon,
Ireland:Dublin, Greece:Athens, Poland:Warsaw, Hungary:Budapest, Egypt:Cairo, Japan:Tokyo, England:London,
Russia:Moscow, China:Beijing, Canada:Ottawa, Peru:Lima, Cuba:Havana, Kenya:Nairobi, Sweden:Stockholm,
Denmark:Copenhagen, Finland:Helsinki, Belgium:Brussels, Switzerland:Bern, Turkey:Ankara, Brazil:Brasilia,
India:New Delhi, South Korea:Seoul, Australia:Canberra
"""))
MORE_CAPITALS = dict(pair.split(":") for pair in _phrases("""
Mexico:Mexico City, Argentina:Buenos Aires, Chile:Santiago, Colombia:Bogota, the Netherlands:Amsterdam, Iceland:Reykjavik, Ukraine:Kyiv,
Romania:Bucharest, Bulgaria:Sofia, Serbia:Belgrade, Croatia:Zagreb, Morocco:Rabat, Thailand:Bangkok, Vietnam:Hanoi, Indonesia:Jakarta,
New Zealand:Wellington, the USA:Washington, Scotland:Edinburgh, Wales:Cardiff, Luxembourg:Luxembourg, the UK:London, Iran:Tehran,
Iraq:Baghdad, Israel:Jerusalem, Saudi Arabia:Riyadh, Pakistan:Islamabad, Slovakia:Bratislava, Slovenia:Ljubljana, Estonia:Tallinn,
Latvia:Riga, Lithuania:Vilnius, Czechia:Prague, Taiwan:Taipei, the Philippines:Manila, Singapore:Singapore, Malta:Valletta
"""))
UNKNOWN_COUNTRIES = _phrases("""
Bhutan, Malawi, Togo, Belize, Nauru, Tonga, Gabon, Chad, Laos, Oman, Fiji, Palau, Benin, Samoa, Guyana,
Eritrea, Lesotho, Moldova, Bolivia, Paraguay, Zambia, Uganda, Nepal, Jordan, Kuwait, Mali, Niger, Yemen
""")
OPPOSITES = [pair.split(":") for pair in _phrases("""
hot:cold, big:small, high:low, fast:slow, old:new, light:dark, day:night, good:bad, happy:sad, long:short,
hard:soft, open:closed, full:empty, wet:dry, early:late, left:right, up:down, black:white, near:far,
rich:poor, strong:weak, thick:thin, loud:quiet, young:old, clean:dirty, easy:difficult, first:last,
true:false, inside:outside, love:hate, win:lose, begin:end, push:pull, buy:sell, summer:winter, north:south,
east:west, heavy:light, wide:narrow, deep:shallow, sweet:sour, friend:enemy, question:answer, yes:no
""")]
THING_COLOURS = [pair.split(":") for pair in _phrases("""
the sky:blue, grass:green, snow:white, the sun:yellow, blood:red, coal:black, a lemon:yellow, a tomato:red,
a banana:yellow, milk:white, chocolate:brown, an orange:orange, a carrot:orange, a frog:green, a crow:black,
a cherry:red, an elephant:grey, a strawberry:red, the night:black, a leaf:green, a swan:white, the sea:blue
""")]
SOUNDS = [pair.split(":") for pair in _phrases("""
cow:moo, cat:meow, dog:woof, sheep:baa, duck:quack, lion:roar, pig:oink, bee:buzz, owl:hoo, mouse:squeak,
frog:ribbit, horse:neigh, crow:caw, snake:hiss, wolf:howl, hen:cluck
""")]
LEGS = [pair.split(":") for pair in _phrases("""
spider:eight, dog:four, cat:four, bird:two, bee:six, ant:six, horse:four, hen:two, cow:four, snake:no,
fish:no, crab:ten, beetle:six, duck:two, fly:six, sheep:four
""")]
BABIES = [pair.split(":") for pair in _phrases("""
dog:puppy, cat:kitten, cow:calf, sheep:lamb, horse:foal, hen:chick, bear:cub, lion:cub, goat:kid, duck:duckling,
frog:tadpole, pig:piglet, deer:fawn, swan:cygnet
""")]

MORE_FOODS = _phrases("""
carrot cake, carbonara, lasagna, risotto, tacos, burritos, guacamole, hummus, falafel, ramen, pad thai, goulash, paella, tiramisu,
apple pie, cheesecake, brownies, muffins, waffles, croissants, bagels, omelettes, meatballs, fried rice, tomato soup, onion soup,
pumpkin soup, chicken curry, roast beef, fish and chips, burgers, hot dogs, lemonade, iced tea, smoothies, pickles, kimchi, pesto,
pineapple, ketchup, mustard, mayonnaise, bacon, tofu, olives, garlic, raisins, marzipan, liquorice, broccoli, spinach, anchovies
""")
MORE_JOBS = _phrases("""
cashier, manager, data analyst, sales assistant, receptionist, babysitter, photographer, mechanic, electrician, journalist,
developer, designer, consultant, accountant, security guard, cleaner, bartender, teaching assistant, intern, project manager, architect
""")
TREE_NOUNS = _words("tree house car river mountain street school phone table chair door window pen bridge cloud flower bird ship train sword hammer")

_COPIED = _words("""
window carpet garden bridge market summer winter dinner letter mountain station problem picture kitchen
corner butter silver paper travel wonder hammer ladder number pocket rocket jacket bucket ticket cricket
pumpkin napkin dolphin captain curtain fountain sandwich village cottage cabbage package message bandage
orchard wizardry blizzard custard mustard leopard standard harvest forest tempest chestnut walnut coconut
peanut salmon lemonade marmalade parade brigade cascade castle whistle thistle bottle battle cattle kettle
nettle rattle saddle paddle puddle riddle fiddle middle simple sample temple apron button cotton ribbon
wagon dragonfly melon pigeon surgeon falcon canyon treasure pleasure measure adventure picnic magic music
fabric plastic elastic attic traffic shelter filter winterly sister master plaster cluster lobster monster
hamlet helmet magnet planet cabinet bonnet sonnet velvet trumpet puppet limit rabbitry summit spirit fruit
biscuit circuit mosaic archer butcherly preacher stretcher voucher plumage mirage garage courage storage
chimney journey money honeycomb valley alley trolley barley parsley monkeys turkey hockey jersey oyster
blister minister cloister thunder cinder wonderland calendar cedar sugar cellar pillar collar dollar scholar
guitarist violinist artist dentistry tourist florist editor actor doctorate sailor tailoring mayor harbour
armour labour flavour vapour saucer dancer grocer officer lancer cancerous singing drawing sewingbox
hiking skating boxing rowing climbing juggling knitting weaving baking camping sailing surfing diving
pottery archery bakery brewery grocery nursery poetry pastry country laundry foundry boundary library
muesli spaghetti broccoli risotto potato tomatoes mangoes yoghurt dessert sherbet omelette baguette waffle
muffin dumpling pudding pickle noodle strudel pretzel bagel lentil basil vanilla paprika papaya banana
lasagna tortilla gorilla chinchilla umbrellas cinema panorama pyjamas drama llama iguana piranha cobra
Lyndon Bristol Stockholm Bangkok Lucerne Verona Bologna Ravenna Vilnia Moscow Kharkov Madras Memphis Tucson
Tampa Omaha Odessa Toledo Orlando Sacramento Lausanne Cologny Brighton Preston Boulder Madeira Marseille
Toulouse Bordeaux Rotterdam Antwerp Salzburg Innsbruck Dresden Leipzig Bremen Nairn Melbourne Canterbury
Roland Cedrik Gilbert Herbert Norbert Hubert Rupert Stella Bettina Martina Sabrina Sabine Nadine Pauline
Caroline Josephine Dorothy Timothy Anthony Beverly Shirley Stanley Wesley Harold Arnold Ronald Donald Gerald
Magdalena Milena Helena Serena Lorena Miranda Amanda Yolanda Brenda Melinda Belinda Rolf Knut Jorge Enzo
""")
_ONSETS = _words("b br c ch d dr f fl g gr h j k kl l m n p pr r s sh st t tr v w y z")
_VOWELS = _words("a e i o u ai ea ia oo")
_ENDS = ["", "n", "l", "r", "s", "ck", "m", "nd", "ra", "lo", "ta", "x", "ny", "ddle", "mp"]


def pseudo_word(rng):
    """Returns a made-up word, for copying and for questions that the model cannot answer."""
    word = ""
    for _ in range(rng.choice((1, 2, 2))):
        word += rng.choice(_ONSETS) + rng.choice(_VOWELS)
    return word + rng.choice(_ENDS)


def rare_word(rng):
    """Returns three to nine random letters, which can only be copied."""
    word, is_vowel = "", rng.random() < 0.3
    for _ in range(rng.randint(3, 9)):
        word += rng.choice("aeiouy" if is_vowel else "bcdfghjklmnpqrstvwxz")
        is_vowel = not is_vowel if rng.random() < 0.8 else is_vowel
    return word


def odd_word(rng):
    """Returns a word that is in no list: a rare word, the head of one with the tail of another, or a made-up word."""
    draw = rng.random()
    if draw < 0.1:
        word = rare_word(rng)
        return odd_word(rng) if word in _HELD_OUT else word
    if draw < 0.3:
        return pseudo_word(rng)
    word = rng.choice(_COPIED)
    if draw < 0.7:
        other = rng.choice(_COPIED)
        word = word[:rng.randint(2, 4)] + other[-rng.randint(2, 5):]
    return odd_word(rng) if word.lower() in _HELD_OUT else word.lower()


def part(words, held_out):
    """Returns the trained or the held-out words of a list."""
    return [w for i, w in enumerate(words) if (i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out]


_HELD_OUT = {word.lower() for group in (NAMES, CITIES, ANIMALS, HEROES, TRAITS, OBJECTS, COLOURS, FOODS, JOBS, HOBBIES)
             for word in part(group, True)}
