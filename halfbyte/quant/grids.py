"""The grids of the iq formats: which combinations of levels a code may stand for.

A grid's rows, read as numbers whose digits are level indices (the first the least), ascend. Stored are their
differences as 16-bit words, deflated, in base 85.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray

Grid = NDArray[np.int16]


def _expand(levels: tuple[int, ...], width: int, packed: str) -> Grid:
    """i16[rows, width]."""
    steps = np.frombuffer(zlib.decompress(base64.b85decode(packed)), dtype="<u2")
    rows = np.cumsum(steps, dtype=np.int64)[:, None]
    digits = rows // len(levels) ** np.arange(width) % len(levels)
    grid: Grid = np.array(levels, dtype=np.int16)[digits]
    return grid


IQ1 = _expand(
    (-1, 0, 1),
    8,
    "c-oCuYnS672(5x7leROn-}nFj&NaLQO=k9Zni?M{aJi7jqk4l!>rd>z_8=bF!-)0pQFONU-nkNe#zwav_MbbbKV>!Q$>48K-AUY#&->E1Q+DZd"
    "vZCs2(eawvhsvxz``K5&`aik8g-;a8$S1FN#ak`TUSn(Q{RukqQt5Q7JE*0ljoE{5X)<fD>?!@FtHJMYO;(ZG!kWzNY^QU_w|k@oU!mICY%aGf"
    "dM5ID!?s0lSp9a8tS@_P#p)9oYvGP%T3OOa_U-Wh&=1pYP`RLz3tLjqwX<)~wXGNT6eJuSDK-lo%R}pNA7n|8?(xyrZvB6oyki){zWzv<Fa$(Y"
    "T+NDqH$In=EzO^#c$=dbZ|8Q^cu!uH5jhbUb>#6euqbN}_y1^eQqx_eSZ<2N<0g)d5CeuuP_1o*!U;`LI`0}9x7%2Lxu(*-SyN$>fr^2!I$6Bx"
    "xfw%(>1T+fLw%1O7p=chKN)(TmRQJ=Od6?eGe&WGH#`p17v<;~v&~}!Zcc>|lg7?wnW2}k!WQyDj2-I%-=`!UFvM%*hQXZ{TjrT>k9*nu$##r9"
    "gn<F0zN8s~63=IT$+oH&v+<_mOj`Vbet*kLdB=yxUtv5Hmmz+G1z{z5woF!|v|9W=TejS??5tb4Xm!yZmKj)N)`@**+2B&H&m8PB#(+_1BP~TH"
    "Dh})9Q|ZS!yo@Kh#Kh`#&^Fc(Gt|cDK}THFaKzP?EcFV^O9_2~kax&Xf;O=z=^cuXNp`kO{L<>FFw2Rx-^zJkp3&>Xes#&RyRMt#6jR-FR#P(v"
    ")u895;}A|3|21XsoOL3CP$lL34*dI4uZ^rAS!UNPnDZmJCt|#U-@_`a(+ls3Q40Ha3l`3qriH5Eu0E`xx{O*jodNHy5}s=Fb>^*A=H{6gwYH_e"
    "M$z9R2VB);r_VoAB`j96cmdXC3oI9FNbve()bP;`rtLn}tyV)EzgX~nlgT9tDP-tfzenbLv|=8;#w}iNj69S5MjEffR#nHI38gznT8<le?i#UW"
    "$`mC<4tOo~e|%I!y}#Dlq^#KjGZ`n7`UO2gjFAqnR57q|;i?5)@0B}d3&-jMQVy3o@T0dqeZ9P#iQhlO($yE*$exASA!bvlD?wvMzD)7gO7V~S"
    "o<emC&ij8SEaZxSmfU~VG3E{69V3%~@-{ld)rD!EKj^+|l}_A4-_hKPS;}hLf0HK}p#",
)

IQ2_XXS = _expand(
    (8, 25, 43),
    8,
    "c-mEw!AiqG6h*Hxgb;=xA%sE7P$Wnw5<+oNqze}!(nXOjq|1JZOFzJG@mu^J&%BO72{W1Z=HC16dm~-``3jbs&xM@}TVAF8ooYoQPt>T_wPmZB"
    ">+{*qajlk9rC^N6`qlNbe#dRl2Gn!bE5Z3(FCiN;l_u6YGd;R1Ep-Fp$ykjR_;Ey|?kv;k%6zZcC;qP)S8D*<>O@t~&AaaZbzFdVxs%3pQykcX"
    "`H1GBN4+E3>X4C+N-JY-aCYuA_1Cipyp8miJOu4@3$h}=gum6^_yOesZiM0V26EJgzD>Qw#lj~4sF(RI(i@~1blf*+9&|+eJpYmGpa(p)R66R5"
    "seBqXf;p+YnDhhew-^K",
)

IQ2_XS = _expand(
    (8, 25, 43),
    8,
    "c-n=ML2JV>426XW#+VR72%(HnN*JMx5=t38j2(LDX^fr6PCM<m-?E>)&$1WVrs*(oB~^M)dX|WpIoTE8p4j2@S1avVg-yTJS=8&DNg+<^f0)AU"
    "XE8hoty+b~TUlImlPOy0BnQEzXho)lyW-v?hFe|Olgeoq71)LjV!YzqPqKoQW4EbdkJrdH@sxNqekOw)<zb@fA5S$}mYNkc9TP{El6w!nC!XUy"
    "r`bKYHQhZCUGVjqe@pjE?XJ(9!QoO>q1@B`h}x8D<*Idfu?A}xQ5>fuUZ<JfW;UoDx5mh$EM+%p<5ZXMx)w#PtU+n;a_z8FO^kf&Zp4n9>TTo;"
    "v?W=EylO8Sc?WwZ2dYBl+y*o!x&>~Fs`1s!v16mUR77ex2JT+BuB6&4hLcY?0<s^cEckyxZYwX`HSs%D;Xt*azYnJCdE1q;MV%e!136vNK2(Qp"
    "*7BnmasRf86J9B3-^23@mMj^e",
)

IQ2_S = _expand(
    (8, 25, 43),
    8,
    "c-oy+OKQVF3>9GzLojAAC757JFvWyWvM3>oE_;Tap^M!A0F^XjXZ~@5u|1ZhXX!m@46rF2YQ;0sRb?YFiBiEEjC>GufY1uEBCCFoM|@!6iz$kF"
    "kT=3M%E-4PbeS4UY;YxQkRMxoL``^%Ypq)tp~+URs`{vE)iovWYqRi!E_Za+e9g}>S@U50l;wS*n@%G843>c%tr($&V^J%cg_aIffktyrVvvm{"
    "U1oNA;YAfYu3i~;)ZpG3m;#>nj%kE%s-hu3?uNIOiu$vF*{pK&Qdeg7#;A_|<vv@}6|(|emeHMft4e%RjBQ10UR|Hs@xnQIt*1G1SRI|S4NC`I"
    "Gw(Ishow3LC+eJZ_wbc0^JM5Nmajv!WBHlzT(GBsAJ@T0`es9Y{0pDKy!tzfzZ0Uj^OX5U=VQIB<(x37SM#W4rY!0;n7~O;dg`$Yog1p96N~aD"
    "r=<2BMH7y-ens4;eRz`04-`2r>RxCy()}j5_K!I4P7|F2<u;0bjQZ|)QVwwx?F{@8j-d?BRP7*t7tZ2?p8f%+y&0h",
)

IQ3_XXS = _expand(
    (4, 12, 20, 28, 36, 44, 52, 62),
    4,
    "c-l>nT~C8R5JfK_-_RlyslnFP+N2s2qdxnlzBT^;f8&`cA%^TOJ9FmFos~kqn02LqJyot-zg?m!f03W1DrFO$dc>$gi58rRSC=}d(+a}q(BqvN"
    "eP|$Rnmu$gYhO;Q3$*r##a`!pss|K8YI4=om1rDvVsFu{bSAU=r(|Ap-MeNqDU3c@=C_N>n!U!4&Gy3Dqq62+z<#@%L3i_vJ#0L?C^<*(R+DM8"
    "#K|Xn2a(`tq<c%|#9BcwU@Ll@xh?72KwWDKbtG$@dvcMhzteZXX#zDs*ld}ew3+74i2mZ($i^!+5L=WUsrf<es5d%W-d-TUNdsT#8DFt(@NE6|"
    "MD2}Qed!PKX%Cq",
)

IQ3_S = _expand(
    (1, 3, 5, 7, 9, 11, 13, 15),
    4,
    "c-mD{Yfr;440PH&+9q9Bw!y|g0u5<`?-T$3pK-o8(@>SfcKkSBToH$_myV~y*-`cqB|z%UqH==P-~Bwj)Z(cnnXw1NIa(a=dirR#mT87GK=-sH"
    ")`*OlnWvXbO|6mpA`|q&+hD#6q|6K(S)nE7Za#`+|A4b~ReR7F%|8-r?NOr=t0mq??33~04avmSSg80MBUeb-SejX-a&macxyY5>>HYc6Xn{?m"
    "hkq!$J1S=!ReiR%(iM%{x@(OiwTZbC@q1#fY<l$Dsz!8}v5&AP-km4~ShPmQKG1uTH*)ETJHzs7csfS3+2~m>GOA-HMY|=2dQ;!<L~erhHu6+7"
    "1LsYrXypsf%$<o~g0{o=VeDqP*qhY;6F#jJtajv-MB-L-fjk7ffbvx67wnZTIG>Qw0a+o^Pe>~wkDM@N>BL-$veqm1Z&aQ~;8G?hR-NSqr$en7"
    "XR*mCxGnO9wL{b|JK5lDGkXC3EpolfGtfl#ty~tOzQK3F>Vaer-?Mxp=0-H5Wzb5RA;Yu7o3(#V`8;tlHppH7>ZAO?_X9|;@&~>@55W",
)
